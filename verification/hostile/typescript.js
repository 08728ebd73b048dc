/**
 * Lets plain Node run the TypeScript of this folder and of the folders it imports: `node --import
 * ./verification/hostile/typescript.js`.
 */
import { register } from 'node:module';

register('./typescript-hooks.js', import.meta.url);
