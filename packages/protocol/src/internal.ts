export {};
export { nodeVersionFault } from './node-version.ts';
