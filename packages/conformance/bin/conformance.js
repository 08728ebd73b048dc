#!/usr/bin/env node
import { main } from '../dist/command/main.js';

// Exit at once: a check that timed out may have left a client that still tries to connect.
process.exit(await main(process.argv.slice(2)));
