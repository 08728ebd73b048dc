/**
 * Rejects a Node version that is too old, in one sentence. Import this first, before a module that
 * uses something an old Node lacks.
 */
import { nodeVersionError } from '@tskeeper/protocol/internal';

const fault = nodeVersionError(process.versions.node);
if (fault !== undefined) throw new Error(fault);
