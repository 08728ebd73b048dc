export { nodeVersionFault } from './node-version.ts';
