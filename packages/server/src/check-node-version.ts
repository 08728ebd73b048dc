/**
 * Refuses a Node that is too old, in one sentence. Import it first, before a module that needs what
 * an old Node lacks.
 */
import { nodeVersionError } from '@tskeeper/protocol/internal';

const fault = nodeVersionError(process.versions.node);
if (fault !== undefined) throw new Error(fault);
