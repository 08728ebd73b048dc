#!/usr/bin/env node
import { endProcess } from '../dist/end-process.js';
import { main } from '../dist/main.js';

// Everything has been written by now, and a server that failed may leave sockets behind that would keep the process alive.
endProcess(await main(process.argv.slice(2)));
