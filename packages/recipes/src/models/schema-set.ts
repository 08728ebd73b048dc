/**
 * Which paths may have what, held by a view of the client. A program that goes through the view is told at once when it is about to write what others could
 * not make sense of. Servers know nothing of it; what must not be possible at all is for ACLs.
 */
import type { ClientView } from '@tskeeper/client';
import { checkClient, checkCount, checkSettings } from '../given.ts';
import { type PathSchema, SchemaRules, type SchemaSetOptions } from './schema-rules.ts';
import { schemaView } from './schema-view.ts';

/** Which paths may have what. (Curator's SchemaSet, with templates in the place of regular expressions, and without a rule for watches.) */
export class SchemaSet {
  readonly #rules: SchemaRules;

  /** `schemas` that have parameters are tried in this order, behind those that have none. Throws a TypeError for what is no template. */
  constructor(schemas: readonly PathSchema[], options: SchemaSetOptions = {}) {
    checkSettings(options, 'SchemaSet', arguments.length);
    this.#rules = new SchemaRules(schemas, options);
  }

  /**
   * The client, with these rules for all that is written through it: what is against them rejects with a RecipeError, Refused, and nothing is asked of a
   * server. Of a `multi`, one operation against them refuses all. Recipes work on it as well. Reads and watches go through as they are.
   */
  view(zk: ClientView): ClientView {
    checkCount(arguments.length, 1, 'view(zk)');
    checkClient(zk);
    return schemaView(zk, this.#rules, '');
  }
}
