/**
 * Names of Kerberos principals, `primary/host@REALM`, and the rules of auth_to_local that shorten
 * them, in the notation of krb5.conf as ZooKeeper reads it (KerberosName.java). SASL ids of all
 * mechanisms have this form.
 */

export interface KerberosName {
  readonly primary: string;
  readonly host: string | undefined;
  readonly realm: string | undefined;
}

/** Undefined if the text has an `@` and is not a principal of at most two components. */
export function parseKerberosName(text: string): KerberosName | undefined {
  const match = /^([^/@]*)(?:\/([^/@]*))?@([^/@]*)$/.exec(text);
  if (match !== null) return { primary: match[1]!, host: match[2], realm: match[3] };
  return text.includes('@') ? undefined : { primary: text, host: undefined, realm: undefined };
}

interface Rule {
  /** As written. */
  readonly text: string;
  /** The short name; undefined if the rule does not apply. */
  readonly apply: (name: KerberosName) => string | undefined;
}

const ruleSyntax = /^\s*(?:(DEFAULT)|RULE:\[(\d+):([^\]]*)\](?:\(([^)]*)\))?(?:s\/([^/]*)\/([^/]*)\/(g)?)?)/;

/** The rules of zookeeper.security.auth_to_local; the first one that applies decides. */
export class AuthToLocal {
  readonly #rules: readonly Rule[];

  /**
   * @param text `DEFAULT`, and `RULE:[n:format](pattern)s/from/to/g`, separated by white space.
   * @param defaultRealm the realm whose names DEFAULT shortens; empty if there is none.
   * @throws Error whose message is a clause with the rule that is wrong.
   */
  constructor(text: string, defaultRealm: string) {
    const rules: Rule[] = [];
    let rest = text.trim();
    while (rest !== '') {
      const match = ruleSyntax.exec(rest);
      if (match === null) throw new Error(`the rule ${rest} is not valid`);
      rules.push(match[1] === undefined ? patternRule(match) : defaultRule(defaultRealm));
      rest = rest.slice(match[0].length);
    }
    this.#rules = rules;
  }

  /** Undefined if no rule applies, or the one that does leaves a `/` or `@`. */
  shortName(name: KerberosName): string | undefined {
    if (name.host === undefined && name.realm === undefined) return name.primary;
    for (const rule of this.#rules) {
      const short = rule.apply(name);
      if (short !== undefined) return /[/@]/.test(short) ? undefined : short;
    }
    return undefined;
  }
}

function defaultRule(defaultRealm: string): Rule {
  return { text: 'DEFAULT', apply: ({ primary, realm }) => (realm === defaultRealm ? primary : undefined) };
}

function patternRule([text, , count, format, pattern, from, to, global]: readonly (string | undefined)[]): Rule {
  const rule = text!.trim();
  const whole = pattern === undefined ? undefined : expression(`^(?:${pattern})$`, '', rule);
  const replaced = from === undefined ? undefined : expression(from, global ?? '', rule);
  const componentCount = Number(count);
  for (const [, index] of format!.matchAll(/\$(\d+)/g)) {
    if (Number(index) > componentCount) throw new Error(`the rule ${rule} has no component $${index}`);
  }
  return {
    text: rule,
    apply({ primary, host, realm }) {
      const parts = [realm ?? '', primary, ...(host === undefined ? [] : [host])];
      if (parts.length - 1 !== componentCount) return undefined;
      const base = format!.replaceAll(/\$(\d+)/g, (_, index: string) => parts[Number(index)] ?? '');
      if (whole?.test(base) === false) return undefined;
      return replaced === undefined ? base : base.replace(replaced, to!);
    },
  };
}

function expression(source: string, flags: string, rule: string): RegExp {
  try {
    return new RegExp(source, flags);
  } catch (cause) {
    throw new Error(`the rule ${rule} has a pattern that is not valid: ${(cause as Error).message}`, { cause });
  }
}
