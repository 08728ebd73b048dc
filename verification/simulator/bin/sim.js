#!/usr/bin/env node
import { main } from '../dist/command/main.js';

await main(process.argv.slice(2));
