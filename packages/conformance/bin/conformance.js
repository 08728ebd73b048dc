#!/usr/bin/env node
import { main } from '../dist/command/main.js';

// At once: a check that ran out of time may have left somebody dialling.
process.exit(await main(process.argv.slice(2)));
