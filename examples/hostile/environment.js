// Looks for secrets of the host. There is no `process`, and nothing in its place.
try {
  return { environment: process.env };
} catch (error) {
  return { environment: null, because: error.message };
}
