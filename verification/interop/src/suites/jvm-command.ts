/**
 * Parses the command line of a JVM that would start a program of ZooKeeper, and adapts its server's
 * settings to tskeeper.
 */

export interface JvmCommand {
  /** `-Dname=value`, as they were given. */
  readonly properties: readonly string[];
  readonly mainClass: string;
  readonly args: readonly string[];
}

/** Options of the JVM itself, such as `-Xmx1g` and the class path, have no effect. */
export function parseJvmCommand(argv: readonly string[]): JvmCommand {
  const properties: string[] = [];
  let at = 0;
  for (; at < argv.length && argv[at]!.startsWith('-'); at++) {
    const word = argv[at]!;
    if (word === '-cp' || word === '-classpath') at++;
    else if (word.startsWith('-D')) properties.push(word);
  }
  return { properties, mainClass: argv[at] ?? '', args: argv.slice(at + 1) };
}

/** TLS on the client port, and certificates as identities: tskeeper does not start with any of these. */
const unsupported =
  /^(?:zookeeper\.)?(?:(?:secureClientPort(?:Address)?|ssl\..+|serverCnxnFactory) *=|authProvider\..+=.*X509AuthenticationProvider)/;

export interface ServerSettings {
  /** The text of zoo.cfg. */
  readonly config: string;
  readonly properties: readonly string[];
}

/**
 * The settings without those that keep tskeeper from starting, and the names of these. The suites
 * configure TLS and the like for every server, even for tests that need none of it.
 */
export function withoutUnsupported({ config, properties }: ServerSettings): ServerSettings & { readonly leftOut: readonly string[] } {
  const leftOut: string[] = [];
  const isKept = (setting: string): boolean => {
    if (!unsupported.test(setting.trim())) return true;
    leftOut.push(setting.split('=')[0]!.trim());
    return false;
  };
  return {
    config: config
      .split('\n')
      .filter((line) => isKept(line))
      .join('\n'),
    properties: properties.filter((property) => isKept(property.slice('-D'.length))),
    leftOut,
  };
}
