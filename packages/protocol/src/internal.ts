export { editDistance } from './edit-distance.ts';
export { nodeVersionError } from './node-version.ts';
