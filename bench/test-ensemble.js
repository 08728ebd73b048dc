/**
 * Starts three servers as a test does, and prints the milliseconds until all of them accept
 * clients.
 */
import { TestEnsemble } from '@tskeeper/testing';

const begun = performance.now();
const ensemble = await TestEnsemble.start({ servers: 3 });
console.log(performance.now() - begun);
await ensemble.close();
