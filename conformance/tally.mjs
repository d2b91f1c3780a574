// Adds up what the suite left: `checks.json` per scenario. Prints one line per check that failed or warned, then the sums.
// Usage: node tally.mjs NAME DIRECTORY FLOOR      exits 1 with a failed check or fewer than FLOOR passed
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const [name, directory, floor] = process.argv.slice(2);
const counts = { SUCCESS: 0, FAILURE: 0, WARNING: 0, SKIPPED: 0, INFO: 0 };
const empty = [];

for (const entry of readdirSync(directory, { withFileTypes: true }).filter(entry => entry.isDirectory()).sort((a, b) => (a.name < b.name ? -1 : 1))) {
  const scenario = entry.name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
  let checks = [];
  try {
    checks = JSON.parse(readFileSync(join(directory, entry.name, 'checks.json'), 'utf8'));
  } catch (error) {
    checks = [{ id: 'checks.json', status: 'FAILURE', errorMessage: error.message }];
  }
  for (const check of checks) {
    counts[check.status] = (counts[check.status] ?? 0) + 1;
    if (!['FAILURE', 'WARNING'].includes(check.status)) continue;
    console.log(`${name} ${check.status} ${scenario} ${check.id}: ${check.errorMessage ?? check.description ?? ''}`);
  }
  // It counts as passed for the suite, so it must be seen here.
  if (!checks.some(check => check.status === 'SUCCESS' || check.status === 'FAILURE')) empty.push(scenario);
}

console.log(`${name}: ${counts.SUCCESS} passed, ${counts.FAILURE} failed`);
const others = Object.entries(counts).filter(([status]) => !['SUCCESS', 'FAILURE'].includes(status));
console.log(`  ${others.map(([status, count]) => `${count} ${status.toLowerCase()}`).join(', ')}`
  + (empty.length ? `; checked nothing: ${empty.join(', ')}` : ''));
if (counts.FAILURE === 0 && counts.SUCCESS < Number(floor)) console.log(`  error: at least ${floor} must pass`);
process.exit(counts.FAILURE === 0 && counts.SUCCESS >= Number(floor) ? 0 : 1);
