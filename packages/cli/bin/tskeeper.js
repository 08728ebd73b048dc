#!/usr/bin/env node
// An old Node would fail while it links modules, with a message that names no remedy (zlib has no
// crc32 before 20.15 and in 21, 22.0 and 22.1). So this file imports nothing before it has checked
// the version, and uses syntax that very old versions can parse. The parent pid is read first: if
// npm ends while this process starts, that pid is the only trace of it.
const parent = process.ppid;
const version = process.versions.node.split('.').map(Number);
const major = version[0];
const minor = version[1];

if (major > 22 || (major === 22 && minor >= 2) || (major === 20 && minor >= 19)) {
  void import('./start.js').then(function (module) {
    return module.start(parent);
  });
} else {
  process.stderr.write(
    'tskeeper needs Node 20.19 or later in line 20, or 22.2 or later. This is Node ' +
      process.versions.node +
      ': install a newer one, for example from https://nodejs.org.\n',
  );
  process.exit(2);
}
