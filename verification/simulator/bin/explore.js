#!/usr/bin/env node
import { exploreCommand } from '../dist/explorer/command.js';

exploreCommand(process.argv.slice(2));
