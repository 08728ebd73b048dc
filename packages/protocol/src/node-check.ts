/** Refuses a Node that is too old, in one sentence. To be imported first, before a module asks for what an old Node lacks. */
import { nodeVersionFault } from './node-version.ts';

const fault = nodeVersionFault(process.versions.node);
if (fault !== undefined) throw new Error(fault);
