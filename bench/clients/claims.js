/**
 * Claims of packages/client/README.md about other clients, each with the place in their sources
 * that proves it. The bench checks all of them in the installed packages, so that a claim that is
 * wrong, or no longer true, fails the bench.
 *
 * `in` names files or folders of the package. `has` is a pattern that one of these files contains,
 * `lacks` one that none of them contains.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';

const sources = /\.(js|ts|c|h|cpp|hpp|py|json|gyp)$/;

const nzc = ['index.js', 'lib'];
const addon = ['lib', 'src'];
const kazoo = ['client.py', 'protocol', 'hosts.py', 'retry.py', 'security.py'];

/**
 * @type {readonly { client: string, says: string, in: readonly string[], has?: RegExp, lacks?:
 * RegExp }[]}
 */
export const claims = [
  { client: 'node-zookeeper-client', says: 'calls take callbacks; there are no promises', in: nzc, lacks: /\bPromise\b|\basync function/ },
  { client: 'node-zookeeper-client', says: 'it is CommonJS', in: ['package.json'], lacks: /"type": "module"/ },
  { client: 'node-zookeeper-client', says: 'it ships no types', in: ['package.json'], lacks: /"types"|"typings"/ },
  {
    client: 'node-zookeeper-client',
    says: 'a server is cut at each colon, so that an IPv6 address is lost',
    in: ['lib/ConnectionStringParser.js'],
    has: /item\.split\(':'\)/,
  },
  { client: 'node-zookeeper-client', says: 'there is a chroot', in: nzc, has: /chrootPath/ },
  { client: 'node-zookeeper-client', says: 'there is no TLS', in: nzc, lacks: /require\(['"](node:)?tls['"]\)/ },
  { client: 'node-zookeeper-client', says: 'there is no SASL exchange', in: nzc, lacks: /OP_CODES\.SASL/ },
  { client: 'node-zookeeper-client', says: 'there is multi', in: nzc, has: /Client\.prototype\.transaction/ },
  { client: 'node-zookeeper-client', says: 'there is no multiRead', in: nzc, lacks: /multi_?read/i },
  { client: 'node-zookeeper-client', says: 'there is no addWatch', in: nzc, lacks: /add_?watch\b/i },
  { client: 'node-zookeeper-client', says: 'there are no containers and no TTL', in: ['lib/CreateMode.js'], lacks: /CONTAINER|TTL/ },
  { client: 'node-zookeeper-client', says: 'there is no reconfig', in: ['index.js'], lacks: /reconfig/i },
  { client: 'node-zookeeper-client', says: 'servers cannot be changed', in: nzc, lacks: /(set|update)_?servers/i },
  {
    client: 'node-zookeeper-client',
    says: 'it does not ask for read-only servers',
    in: ['lib/ConnectionManager.js'],
    has: /No read only support yet/,
  },
  { client: 'node-zookeeper-client', says: 'there is no AbortSignal', in: nzc, lacks: /AbortSignal|AbortController|\.signal\b/ },
  { client: 'node-zookeeper-client', says: 'retries are off unless asked for', in: ['index.js'], has: /retries : 0/ },
  { client: 'node-zookeeper-client', says: 'watches are set anew with setWatches', in: nzc, has: /OP_CODES\.SET_WATCHES/ },
  { client: 'zookeeper', says: 'it is an addon over the C client', in: ['binding.gyp', 'src'], has: /zookeeper_init\(/ },
  {
    client: 'zookeeper',
    says: 'the C client is of 3.8.0',
    in: ['deps/zookeeper-client-c/include/zookeeper_version.h'],
    has: /"3\.8\.0"/,
  },
  {
    client: 'zookeeper',
    says: 'a host is what is ahead of the last colon, brackets included',
    in: ['deps/zookeeper-client-c/src/zookeeper.c'],
    has: /strrchr\(host, ':'\)/,
  },
  { client: 'zookeeper', says: 'brackets mean nothing', in: ['deps/zookeeper-client-c/src/zookeeper.c'], lacks: /'\['/ },
  { client: 'zookeeper', says: 'calls give promises', in: ['lib/zk_promise.js'], has: /new ZkPromise|ZkPromise/ },
  { client: 'zookeeper', says: 'it is CommonJS', in: ['package.json'], lacks: /"type": "module"/ },
  { client: 'zookeeper', says: 'it ships types', in: ['package.json'], has: /"types": ".*\.d\.ts"/ },
  {
    client: 'zookeeper',
    says: 'the C client is built without TLS and SASL on Windows',
    in: ['scripts'],
    has: /-DWITH_OPENSSL=OFF -DWITH_CYRUS_SASL=OFF/,
  },
  { client: 'zookeeper', says: 'there is no TLS', in: addon, lacks: /zookeeper_init_ssl|certfile/i },
  { client: 'zookeeper', says: 'there is no SASL', in: addon, lacks: /sasl/i },
  { client: 'zookeeper', says: 'there is no multi', in: addon, lacks: /zoo_a?multi|transaction/i },
  { client: 'zookeeper', says: 'there is no addWatch', in: addon, lacks: /add_?watch\b/i },
  { client: 'zookeeper', says: 'there are containers and TTL', in: addon, has: /zoo_acreate_ttl/ },
  { client: 'zookeeper', says: 'there is reconfig', in: addon, has: /zoo_areconfig/ },
  { client: 'zookeeper', says: 'servers can be changed', in: addon, has: /zoo_set_servers/ },
  { client: 'zookeeper', says: 'it does not ask for read-only servers', in: addon, has: /zookeeper_init\([^;]*, 0\)/ },
  { client: 'zookeeper', says: 'there is no AbortSignal', in: addon, lacks: /AbortSignal|AbortController/ },
  { client: 'kazoo', says: 'IPv6 addresses are understood', in: ['hosts.py'], has: /IPv6/ },
  { client: 'kazoo', says: 'there is TLS', in: kazoo, has: /use_ssl/ },
  { client: 'kazoo', says: 'there is SASL', in: kazoo, has: /sasl_options/ },
  { client: 'kazoo', says: 'there is multi', in: kazoo, has: /def transaction/ },
  { client: 'kazoo', says: 'there is no multiRead', in: kazoo, lacks: /multi_?read/i },
  { client: 'kazoo', says: 'there is no addWatch', in: kazoo, lacks: /add_?watch\b/i },
  { client: 'kazoo', says: 'there are no containers and no TTL', in: kazoo, lacks: /container|\bttl\b/i },
  { client: 'kazoo', says: 'there is reconfig', in: kazoo, has: /def reconfig/ },
  { client: 'kazoo', says: 'servers can be changed', in: kazoo, has: /def set_hosts/ },
  { client: 'kazoo', says: 'read-only servers can be asked for', in: kazoo, has: /read_only/ },
  { client: 'kazoo', says: 'there are retries', in: kazoo, has: /class KazooRetry/ },
];

async function* textsOf(folder, names) {
  for (const name of names) {
    const file = path.join(folder, name);
    if ((await stat(file)).isDirectory()) yield* textsOf(file, await readdir(file));
    else if (sources.test(name)) yield await readFile(file, 'utf8');
  }
}

/** What is wrong with a claim about the package in `folder`; undefined if it is true. */
async function contradictionOf(claim, folder) {
  const missing = claim.in.find((name) => !existsSync(path.join(folder, name)));
  if (missing !== undefined) return `there is no ${missing} to look at`;
  let found = false;
  for await (const text of textsOf(folder, claim.in)) found ||= (claim.has ?? claim.lacks).test(text);
  if (claim.has !== undefined && !found) return `nothing is like ${claim.has}`;
  return claim.lacks !== undefined && found ? `something is like ${claim.lacks}` : undefined;
}

/** Checks all claims about these clients; returns a sentence for each false one. */
export async function checkClaims(clients, all = claims) {
  const violations = [];
  for (const { kind, sourceFolder } of clients) {
    for (const claim of all.filter(({ client }) => client === kind)) {
      const fault = await contradictionOf(claim, sourceFolder);
      if (fault !== undefined) violations.push(`${claim.client}: it is not true that ${claim.says}: ${fault}`);
    }
  }
  return violations;
}

/**
 * Number of packages that an npm installation has put into its folder, besides the requested one.
 */
export async function countDependencies(packageFolder) {
  let count = 0;
  const modules = path.join(packageFolder, '..');
  for (const name of await readdir(modules)) {
    if (name.startsWith('.')) continue;
    count += name.startsWith('@') ? (await readdir(path.join(modules, name))).length : 1;
  }
  return count - 1;
}
