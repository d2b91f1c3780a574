// Timers in a binary heap ordered by due time and then by age. The embedder asks `runTimers` to run what is due
// and learns how long it may sleep.
import { asyncContext, native, now, setAsyncContext } from "./host.js";
import {
  MapCtor, TypeErrorCtor, apply, mapClear, mapDelete, mapGet, mapSet, max, pop, push, root, setPrototypeOf,
} from "./primordials.js";
import { integer, requireArguments } from "./webidl.js";
import { reportException } from "./report.js";

/** Without a prototype: an accessor that tenant code defines for an index on Array.prototype must not see our timers. */
function emptyHeap() {
  const list = [];
  setPrototypeOf(list, null);
  return list;
}
let heap = emptyHeap();
/** About how many in the heap were cleared: one that was cleared while it ran is counted, too. */
let cleared = 0;
let sequence = 0;
let nextId = 1;
/** How deep in timers set by timers the running code is: browsers slow those down, and so do we. */
let nesting = 0;
const active = new MapCtor();

const before = (a, b) => a.due < b.due || (a.due === b.due && a.sequence < b.sequence);

function insert(timer) {
  let at = heap.length;
  push(heap, timer);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (!before(timer, heap[parent])) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = timer;
}

function removeFirst() {
  const last = pop(heap);
  const size = heap.length;
  if (size === 0) return;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && before(heap[child + 1], heap[child])) child++;
    if (!before(heap[child], last)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
}

function schedule(timer) {
  const delay = timer.level > 5 ? max(4, timer.delay) : timer.delay;
  timer.due = now() + delay;
  timer.sequence = sequence++;
  insert(timer);
}

/** Calls `callback` once, `delay` milliseconds from now, with `context` as the running call. */
export function addTimer(callback, delay, context, parameters = [], repeat = false) {
  const timer = {
    id: nextId++, callback, delay: max(0, delay), context, parameters, repeat, level: nesting + 1, due: 0, sequence: 0,
    cleared: false,
  };
  mapSet(active, timer.id, timer);
  schedule(timer);
  return timer.id;
}

function clearTimer(id) {
  const timer = mapGet(active, id);
  if (timer === undefined) return;
  timer.cleared = true;
  timer.callback = timer.parameters = timer.context = undefined;
  mapDelete(active, id);
  if (++cleared > 100 && cleared * 2 > heap.length) compact();
}

function run(timer) {
  const outer = asyncContext();
  const outerNesting = nesting;
  setAsyncContext(timer.context);
  nesting = timer.level;
  try {
    apply(timer.callback, root, timer.parameters);
  } catch (error) {
    reportException(error);
  } finally {
    nesting = outerNesting;
    setAsyncContext(outer);
  }
  native.drainMicrotasks();
  if (timer.cleared) return;
  if (!timer.repeat) {
    mapDelete(active, timer.id);
    return;
  }
  timer.level++;
  schedule(timer);
}

function first() {
  while (heap.length > 0 && heap[0].cleared) {
    removeFirst();
    cleared--;
  }
  return heap[0];
}

/**
 * Runs every timer that is due, each as a task of its own. Timers set meanwhile wait for the next time.
 * Returns the milliseconds until the next one is due, or -1 when there is none.
 */
export function runTimers() {
  const limit = now();
  const youngest = sequence;
  for (;;) {
    const timer = first();
    if (timer === undefined) return -1;
    if (timer.due > limit || timer.sequence >= youngest) return max(0, timer.due - now());
    removeFirst();
    run(timer);
  }
}

/** Forgets cleared timers that wait for their time, once they are most of the heap. */
function compact() {
  const before = heap;
  heap = emptyHeap();
  cleared = 0;
  for (let i = 0; i < before.length; i++) if (!before[i].cleared) insert(before[i]);
}

export function clearTimers() {
  for (let i = 0; i < heap.length; i++) heap[i].cleared = true;
  heap = emptyHeap();
  cleared = 0;
  mapClear(active);
}

function set(handler, timeout, parameters, repeat) {
  if (typeof handler !== "function") {
    throw new TypeErrorCtor("the handler is not a function; code in strings is not run");
  }
  return addTimer(handler, integer(timeout, 32, { signed: true }), asyncContext(), parameters, repeat);
}

// Method shorthand: the functions must not be constructors.
export const { setTimeout, setInterval, clearTimeout, clearInterval } = {
  setTimeout(handler, timeout = 0, ...parameters) {
    requireArguments(arguments.length, 1, "setTimeout");
    return set(handler, timeout, parameters, false);
  },
  setInterval(handler, timeout = 0, ...parameters) {
    requireArguments(arguments.length, 1, "setInterval");
    return set(handler, timeout, parameters, true);
  },
  clearTimeout(id = 0) {
    clearTimer(integer(id, 32, { signed: true }));
  },
  clearInterval(id = 0) {
    clearTimer(integer(id, 32, { signed: true }));
  },
};
