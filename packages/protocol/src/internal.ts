export {
  clientPortService,
  digestMd5Proofs,
  type DigestMd5Proofs,
  type DigestMd5Service,
  type DigestMd5Terms,
  parseDirectives,
  quoted,
  SaslError,
} from './auth/digest-md5.ts';
export { editDistance } from './edit-distance.ts';
export { nodeVersionError } from './node-version.ts';
