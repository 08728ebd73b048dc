// Starts the command. bin/tskeeper.js imports this file after it has checked the version of Node.

/** `parent` is the parent pid of this process, read before any module was loaded. */
export async function start(parent) {
  // Loading takes long enough for npm to end in the meantime, so look for its processes first.
  const { findNpmAncestors, processTable } = await import('../dist/npm-watch.js');
  const npm = findNpmAncestors({ environment: process.env, program: process.argv[1], parentPid: parent }, processTable);

  // Node opens all modules that one module imports at once. Importing the packages one by one lets
  // a server start with few file descriptors.
  for (const name of ['protocol', 'core', 'runtime', 'server']) await import(`@tskeeper/${name}`);
  const [{ endProcess }, { main }] = [await import('../dist/end-process.js'), await import('../dist/main.js')];

  // All output has been written. A server that failed may leave sockets open, which would keep the
  // process alive.
  endProcess(await main(process.argv.slice(2), npm));
}
