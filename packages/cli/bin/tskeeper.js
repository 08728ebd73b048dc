#!/usr/bin/env node
import { endProcess, main } from '../dist/index.js';

// Everything has been written by now, and a server that failed may leave sockets behind that would keep the process alive.
endProcess(await main(process.argv.slice(2)));
