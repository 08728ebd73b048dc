// What `tskeeper` does once bin/tskeeper.js has found Node new enough.
// Node reads all modules at once that another one names. One package after the other, a server starts with few descriptors as well.
for (const name of ['protocol', 'core', 'runtime', 'server']) await import(`@tskeeper/${name}`);
const [{ endProcess }, { main }] = [await import('../dist/end-process.js'), await import('../dist/main.js')];

// Everything has been written by now, and a server that failed may leave sockets behind that would keep the process alive.
endProcess(await main(process.argv.slice(2)));
