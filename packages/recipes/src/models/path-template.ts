/**
 * Paths with named parameters: `/users/{user}/orders/{order}`. The compiler parses them as well, so
 * that a missing or a surplus parameter does not compile.
 *
 * A parameter is one whole name, so a path matches a template in one way or not at all.
 */
import { checkArgumentCount, checkString } from '../validation.ts';

/** The names in braces of a template: `user` and `order` of `/users/{user}/orders/{order}`. */
export type ParamNames<Template extends string> = Template extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never;

/**
 * The values of the parameters of a template. A template that the compiler does not know accepts
 * any.
 */
export type PathParams<Template extends string, Value = string> = string extends Template
  ? Readonly<Record<string, Value>>
  : { readonly [Name in ParamNames<Template>]: Value };

/** The arguments with the parameters of a template: none, if it has none. */
export type PathArguments<Template extends string> = string extends Template
  ? [params?: PathParams<Template, ParamValue>]
  : [ParamNames<Template>] extends [never]
    ? []
    : [params: PathParams<Template, ParamValue>];

/** The template of the parent: `/users` of `/users/{user}`. */
export type ParentTemplate<Template extends string> = string extends Template
  ? string
  : Template extends `${infer Head}/${infer Tail}`
    ? Tail extends `${string}/${string}`
      ? `${Head}/${ParentTemplate<Tail>}`
      : Head
    : '';

/** A name, or a part of one. */
export type ParamValue = string | number;

type Segment = { readonly kind: 'name'; readonly name: string } | { readonly kind: 'param'; readonly param: string };

/** A path with named parameters. (Curator's ZPath.) */
export class PathTemplate<const Template extends string = string> {
  /** As given. */
  readonly template: Template;
  readonly #segments: readonly Segment[];

  /** Throws a TypeError for an invalid template. */
  constructor(template: Template) {
    checkArgumentCount(arguments.length, 1, 'new PathTemplate(template)');
    this.template = template;
    this.#segments = parseTemplate(template);
  }

  /** Of the parameters, in the order of the path. */
  get paramNames(): readonly string[] {
    return this.#segments.flatMap((segment) => (segment.kind === 'param' ? [segment.param] : []));
  }

  /**
   * The path with these values for the parameters. Throws a TypeError for a value that cannot be
   * the name of a znode.
   */
  path(...[params]: PathArguments<Template>): string {
    checkArgumentCount(arguments.length, 1, 'path(params)');
    return `/${this.#fillIn(params, this.#segments).join('/')}`;
  }

  /** The path of the parent znode. Throws as `path` does. */
  parentPath(...[params]: PathArguments<ParentTemplate<Template>>): string {
    checkArgumentCount(arguments.length, 1, 'parentPath(params)');
    return `/${this.#fillIn(params, this.#segments.slice(0, -1)).join('/')}`;
  }

  /** The values of the parameters in a path; undefined if the path does not match. */
  match(path: string): PathParams<Template> | undefined {
    checkArgumentCount(arguments.length, 1, 'match(path)');
    checkString(path, 'a path');
    const names = splitPath(path);
    if (names.length !== this.#segments.length || !this.#fits(names)) return undefined;
    const params: Record<string, string> = {};
    this.#segments.forEach((segment, at) => {
      if (segment.kind === 'param') params[segment.param] = names[at]!;
    });
    return params as PathParams<Template>;
  }

  /** Whether matching paths can be below this one. */
  canMatchBelow(path: string): boolean {
    checkArgumentCount(arguments.length, 1, 'canMatchBelow(path)');
    checkString(path, 'a path');
    const names = splitPath(path);
    return names.length < this.#segments.length && this.#fits(names);
  }

  /** Whether each name matches the segment at its place. */
  #fits(names: readonly string[]): boolean {
    return names.every((name, at) => {
      const segment = this.#segments[at];
      return segment?.kind === 'param' || segment?.name === name;
    });
  }

  #fillIn(params: Readonly<Record<string, ParamValue>> | undefined, segments: readonly Segment[]): string[] {
    return segments.map((segment) => {
      if (segment.kind === 'name') return segment.name;
      const value = params?.[segment.param];
      if (value === undefined) throw new TypeError(`${this.template} needs the parameter ${segment.param}`);
      const name = String(value);
      if (name === '' || name === '.' || name === '..' || name.includes('/'))
        throw new TypeError(`"${name}" cannot be the ${segment.param} of ${this.template}: it is not a name of a znode`);
      return name;
    });
  }
}

function splitPath(path: string): string[] {
  return path === '/' ? [] : path.slice(1).split('/');
}

function parseTemplate(template: string): Segment[] {
  const templateError = (what: string) => new TypeError(`"${template}" is not a template of a path: ${what}; write it as /users/{user}`);
  if (typeof template !== 'string' || !template.startsWith('/') || template.length === 1)
    throw templateError('it must begin with a slash and a name');
  const seen = new Set<string>();
  return template
    .slice(1)
    .split('/')
    .map((text): Segment => {
      if (text === '') throw templateError('a name is empty');
      const param = /^\{([^{}]+)\}$/.exec(text)?.[1];
      if (param === undefined) {
        if (/[{}]/.test(text)) throw templateError(`in "${text}" the braces do not enclose the whole name`);
        return { kind: 'name', name: text };
      }
      if (seen.has(param)) throw templateError(`the parameter ${param} occurs twice`);
      seen.add(param);
      return { kind: 'param', param };
    });
}
