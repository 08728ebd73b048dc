/**
 * Rules for paths, enforced by a view of the client. A program that uses the view gets an error at
 * once when it is about to write what others cannot read. Servers do not know the rules; what must
 * be impossible needs ACLs.
 */
import type { ClientView } from '@tskeeper/client';
import { checkClient, checkArgumentCount, checkConstructorOptions } from '../validation.ts';
import { type PathSchema, SchemaRules, type SchemaSetOptions } from './schema-rules.ts';
import { schemaView } from './schema-view.ts';

/**
 * Rules for paths. (Curator's SchemaSet, with templates instead of regular expressions, and without
 * a rule for watches.)
 */
export class SchemaSet {
  readonly #rules: SchemaRules;

  /**
   * `schemas` with parameters are tried in this order, after those without. Throws a TypeError for
   * an invalid template.
   */
  constructor(schemas: readonly PathSchema[], options: SchemaSetOptions = {}) {
    checkConstructorOptions(options, 'SchemaSet', arguments.length);
    this.#rules = new SchemaRules(schemas, options);
  }

  /**
   * The client, with these rules for all its writes: a write against them rejects with a
   * RecipeError, Refused, and sends no request. One operation against them rejects the whole
   * `multi`. Recipes work with it as well. Reads and watches are not restricted.
   */
  view(zk: ClientView): ClientView {
    checkArgumentCount(arguments.length, 1, 'view(zk)');
    checkClient(zk);
    return schemaView(zk, this.#rules, '');
  }
}
