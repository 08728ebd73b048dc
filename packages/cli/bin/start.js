// What `tskeeper` does once bin/tskeeper.js has found Node new enough.

/** `parent` is the parent of this process, read before anything else. */
export async function start(parent) {
  // Loading takes long enough for npm to be ended meanwhile, so its processes are looked for first.
  const { lineToNpm, processTable } = await import('../dist/npm-watch.js');
  const npm = lineToNpm({ environment: process.env, program: process.argv[1], parent }, processTable);

  // Node reads all modules at once that another one names. One package after the other, a server starts with few descriptors as well.
  for (const name of ['protocol', 'core', 'runtime', 'server']) await import(`@tskeeper/${name}`);
  const [{ endProcess }, { main }] = [await import('../dist/end-process.js'), await import('../dist/main.js')];

  // Everything has been written by now, and a server that failed may leave sockets behind that would keep the process alive.
  endProcess(await main(process.argv.slice(2), npm));
}
