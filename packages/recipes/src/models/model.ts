/**
 * What stands where in the tree, and how it is kept: a template of paths, a codec for the data, and how the znodes are made. A model is a description, and
 * asks nothing of a server; `at` and `below` take it to a client.
 *
 *     /users/{user}/orders/{order}      the template
 *     /users/7/orders/33                its path for { user: 7, order: 33 }
 *     {"sum":12}                        data by the codec, of the value { sum: 12 }
 */
import { checkCodec, checkCount, checkOptions, checkSettings, checkSource } from '../given.ts';
import { ModelChildren } from './model-children.ts';
import type { ModelOptions } from './model-value.ts';
import { ModelZnode } from './model-znode.ts';
import { type ParentTemplate, type PathArguments, PathTemplate } from './path-template.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { PathSchema } from './schema-rules.ts';

/** What stands where in the tree, and how it is kept. (Curator's ModelSpec.) */
export class Model<const Template extends string, Read, Written = Read> {
  /** Of the paths. */
  readonly template: PathTemplate<Template>;
  readonly #options: ModelOptions<Read, Written>;

  /** Throws a TypeError for what is no template. */
  constructor(template: Template, options: ModelOptions<Read, Written>) {
    this.template = new PathTemplate(template);
    checkOptions(options, '{ codec: jsonCodec() }');
    checkSettings(options, 'Model', arguments.length);
    checkCodec(options.codec, 'jsonCodec()');
    this.#options = options;
  }

  /** One znode. Of sequential ones the last parameter is what stands in front of the number. Throws a TypeError for what is no name of a znode. */
  at(source: SessionSource, ...params: PathArguments<Template>): ModelZnode<Read, Written> {
    checkCount(arguments.length, 2, 'at(source, params)');
    return new ModelZnode(source, this.template.path(...params), this.#options);
  }

  /** All znodes below one parent. Throws as `at` does. */
  below(source: SessionSource, ...params: PathArguments<ParentTemplate<Template>>): ModelChildren<Template, Read> {
    checkCount(arguments.length, 2, 'below(source, params)');
    checkSource(source);
    return new ModelChildren(source, this.template.parentPath(...params), this.template, this.#options.codec);
  }

  /**
   * What the model asks of its znodes, for a `SchemaSet`: that they are made by its mode, with data that its codec can read. (Curator's `ModelSpec.schema`.)
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
