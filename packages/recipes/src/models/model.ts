/**
 * A part of the tree: a template of paths, a codec for the data, and how the znodes are created. A
 * model is a description, and sends no request; `at` and `children` combine it with a client.
 *
 *     /users/{user}/orders/{order}      the template
 *     /users/7/orders/33                its path for { user: 7, order: 33 }
 *     {"sum":12}                        the data, by the codec, of the value { sum: 12 }
 */
import { checkCodec, checkArgumentCount, checkOptions, checkConstructorOptions, checkSource } from '../validation.ts';
import { ModelChildren } from './model-children.ts';
import type { ModelOptions } from './model-value.ts';
import { ModelZnode } from './model-znode.ts';
import { type ParentTemplate, type PathArguments, PathTemplate } from './path-template.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { PathSchema } from './schema-rules.ts';

/**
 * Describes a part of the tree: paths, values, and how znodes are created. (Curator's ModelSpec.)
 */
export class Model<const Template extends string, Read, Written = Read> {
  /** Of the paths. */
  readonly template: PathTemplate<Template>;
  readonly #options: ModelOptions<Read, Written>;

  /** Throws a TypeError for an invalid template. */
  constructor(template: Template, options: ModelOptions<Read, Written>) {
    this.template = new PathTemplate(template);
    checkOptions(options, '{ codec: jsonCodec() }');
    checkConstructorOptions(options, 'Model', arguments.length);
    checkCodec(options.codec, 'jsonCodec()');
    this.#options = options;
  }

  /**
   * One znode. For sequential ones the last parameter is the part before the number. Throws a
   * TypeError for a value that cannot be the name of a znode.
   */
  at(source: SessionSource, ...params: PathArguments<Template>): ModelZnode<Read, Written> {
    checkArgumentCount(arguments.length, 2, 'at(source, params)');
    return new ModelZnode(source, this.template.path(...params), this.#options);
  }

  /** All znodes below one parent. Throws as `at` does. */
  children(source: SessionSource, ...params: PathArguments<ParentTemplate<Template>>): ModelChildren<Template, Read> {
    checkArgumentCount(arguments.length, 2, 'children(source, params)');
    checkSource(source);
    return new ModelChildren(source, this.template.parentPath(...params), this.template, this.#options.codec);
  }

  /**
   * The rules of the model for its znodes, for a `SchemaSet`: its mode, and data that its codec can
   * decode. (Curator's `ModelSpec.schema`.)
   */
  get schema(): PathSchema {
    const { mode = 'persistent', codec } = this.#options;
    return {
      path: this.template.template,
      ephemeral: mode.startsWith('ephemeral') ? 'must' : 'cannot',
      sequential: mode.includes('Sequential') ? 'must' : 'cannot',
      check: (data) => void codec.decode(data),
    };
  }
}
