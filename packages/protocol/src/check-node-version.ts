/**
 * Refuses a Node that is too old, in one sentence. Must be imported first, before a module uses
 * features that an old Node lacks.
 */
import { nodeVersionError } from './node-version.ts';

const fault = nodeVersionError(process.versions.node);
if (fault !== undefined) throw new Error(fault);
