/**
 * `npm start`: makes a clone ready, and then is the server itself, in one process. npm passes SIGTERM on to the process that it started
 * and to none of its children.
 *
 *   node scripts/start.js [arguments of tskeeper serve]
 */
const parent = process.ppid;

await import('./ensure-built.js');

// An installation takes minutes. A server that starts when npm has gone meanwhile would be an orphan.
if (process.ppid !== parent) {
  console.error('npm has ended while the server was built, so it is not started.');
  process.exit(1);
}
process.argv.splice(2, 0, 'serve');
await import('../packages/cli/bin/tskeeper.js');
