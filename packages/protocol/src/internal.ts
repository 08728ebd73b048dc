export { editDistance } from './edit-distance.ts';
export { nodeVersionFault } from './node-version.ts';
