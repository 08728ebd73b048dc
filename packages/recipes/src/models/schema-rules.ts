/** Rules for paths, by templates, and their violations. */
import type { CreateMode, Data } from '@tskeeper/client';
import { checkOptions as checkNamedOptions, valueTypes, oneOf, optionTypes } from '@tskeeper/client/internal';
import { checkArray, checkOptions } from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import { messageOf } from './model-value.ts';
import { PathTemplate } from './path-template.ts';

/** Whether a znode can, must or cannot be something. */
export type Allowance = 'can' | 'must' | 'cannot';

/** What is allowed at the paths of one template. */
export interface PathSchema {
  /** A template: `/users/{user}`; without parameters it is the path of one znode. */
  readonly path: string;
  /** Whether znodes are created as ephemerals. Default: `can`. */
  readonly ephemeral?: Allowance | undefined;
  /**
   * Whether they are created with a number after the name. Such a name matches a parameter only.
   * Default: `can`.
   */
  readonly sequential?: Allowance | undefined;
  /** Whether they may be deleted, alone or with their parents. Default: true. */
  readonly canBeDeleted?: boolean | undefined;
  /** Throws for invalid data, before they are written. Default: all data are valid. */
  readonly check?: ((data: Uint8Array | null, path: string) => void) | undefined;
}

/** What applies if no template matches. */
export interface SchemaSetOptions {
  /**
   * Whether paths that match no template may be written. Parents of matching paths always may.
   * Default: `allowed`.
   */
  readonly unmatched?: 'allowed' | 'refused' | undefined;
}

interface Rule extends PathSchema {
  readonly template: PathTemplate;
}

const allowanceType = oneOf('can', 'must', 'cannot');
const schemaTypes = optionTypes({
  path: valueTypes.string,
  ephemeral: allowanceType,
  sequential: allowanceType,
  canBeDeleted: valueTypes.boolean,
  check: valueTypes.function,
});

const encoder = new TextEncoder();

/** Each check throws a RecipeError, Refused. */
export class SchemaRules {
  /**
   * Rules for one path come before those for many; otherwise in the given order. The first match
   * counts.
   */
  readonly #rules: readonly Rule[];
  readonly #unmatched: 'allowed' | 'refused';

  constructor(schemas: readonly PathSchema[], { unmatched = 'allowed' }: SchemaSetOptions = {}) {
    checkArray(schemas, 'schemas');
    schemas.forEach((schema, at) => {
      checkOptions(schema, "{ path: '/users/{user}' }", 'a schema');
      checkNamedOptions(schema, schemaTypes, `schemas[${at}]`);
    });
    const rules = schemas.map((schema): Rule => ({ ...schema, template: new PathTemplate<string>(schema.path) }));
    const hasParams = ({ template }: Rule) => template.paramNames.length > 0;
    this.#rules = [...rules.filter((rule) => !hasParams(rule)), ...rules.filter(hasParams)];
    this.#unmatched = unmatched;
  }

  checkCreate(path: string, data: Data, mode: CreateMode): void {
    const isSequential = mode.includes('Sequential');
    const rule = this.#ruleOf(isSequential ? `${path}0000000000` : path);
    if (rule === undefined) return;
    const { ephemeral = 'can', sequential = 'can' } = rule;
    checkAllowance(path, rule, 'ephemeral', ephemeral, mode.startsWith('ephemeral'));
    checkAllowance(path, rule, 'sequential', sequential, isSequential);
    checkSchemaData(path, rule, data);
  }

  checkSetData(path: string, data: Data): void {
    const rule = this.#ruleOf(path);
    if (rule !== undefined) checkSchemaData(path, rule, data);
  }

  checkDelete(path: string): void {
    const rule = this.#ruleOf(path);
    if (rule?.canBeDeleted === false) throw schemaRefused(path, rule, 'must not be deleted');
  }

  /**
   * Does not read the children: it is enough that a znode could exist there that must not be
   * deleted.
   */
  checkDeleteRecursive(path: string): void {
    this.checkDelete(path);
    const below = this.#rules.find(({ template, canBeDeleted }) => canBeDeleted === false && template.canMatchBelow(path));
    if (below !== undefined) throw schemaRefused(path, below, 'must not be deleted with everything below it');
  }

  /** For znodes that are created as parents of others, without data. */
  checkParent(path: string): void {
    const rule = this.#ruleOf(path);
    if (rule !== undefined) checkAllowance(path, rule, 'ephemeral', rule.ephemeral ?? 'can', false);
  }

  #ruleOf(path: string): Rule | undefined {
    const rule = this.#rules.find(({ template }) => template.match(path) !== undefined);
    if (rule === undefined && this.#unmatched === 'refused' && !this.#rules.some(({ template }) => template.canMatchBelow(path)))
      throw new RecipeError('Refused', `no schema matches ${path}, so nothing may be written to it; add a schema, or allow others`);
    return rule;
  }
}

function schemaRefused(path: string, { path: template }: Rule, what: string, cause?: unknown): RecipeError {
  return new RecipeError('Refused', `by the schema of ${template}, ${path} ${what}`, { cause });
}

function checkAllowance(path: string, rule: Rule, what: 'ephemeral' | 'sequential', allowance: Allowance, is: boolean): void {
  if (is && allowance === 'cannot') throw schemaRefused(path, rule, `cannot be ${what}`);
  if (!is && allowance === 'must') throw schemaRefused(path, rule, `must be ${what}`);
}

function checkSchemaData(path: string, rule: Rule, data: Data): void {
  try {
    rule.check?.(typeof data === 'string' ? encoder.encode(data) : data, path);
  } catch (cause) {
    throw schemaRefused(path, rule, `cannot have these data: ${messageOf(cause)}`, cause);
  }
}
