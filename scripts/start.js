/**
 * `npm start`: prepares a clone, and then runs the server in the same process, since npm passes
 * SIGTERM only to the process that it started.
 *
 *   node scripts/start.js [arguments of tskeeper serve]
 */
const parent = process.ppid;

await import('./ensure-built.js');

// An installation takes minutes. A server that starts after npm has ended would be an orphan.
if (process.ppid !== parent) {
  console.error('npm ended while the server was built, so the server is not started.');
  process.exit(1);
}
process.argv.splice(2, 0, 'serve');
await import('../packages/cli/bin/tskeeper.js');
