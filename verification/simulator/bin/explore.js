#!/usr/bin/env node
import { explore } from '../dist/explorer/command.js';

explore(process.argv.slice(2));
