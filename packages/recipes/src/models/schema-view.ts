/** A client that validates writes before it sends them. */
import type { ClientView, CreateOptions, Data, Stat, UpdateOptions, Updater, WriteOp } from '@tskeeper/client';
import { RecipeError } from '../recipe-error.ts';
import type { SchemaRules } from './schema-rules.ts';

/** All methods that can write, and the view of a view. */
type GuardedMethods = Pick<ClientView, 'chroot' | 'create' | 'delete' | 'deleteRecursive' | 'ensurePath' | 'multi' | 'setData' | 'update'>;

/** `pathPrefix` is the prefix that the view has cut off: schemas use full paths. */
export function schemaView(zk: ClientView, schemas: SchemaRules, pathPrefix: string): ClientView {
  const fullPath = (path: string) => (path === '/' ? pathPrefix || '/' : pathPrefix + path);
  const guarded: GuardedMethods = {
    chroot: (path) => schemaView(zk.chroot(path), schemas, path === '/' ? pathPrefix : pathPrefix + path),
    create: async (path: string, data?: Data, options?: CreateOptions) => {
      schemas.checkCreate(fullPath(path), data ?? null, options?.mode ?? 'persistent');
      return await zk.create(path, data, options);
    },
    setData: async (path, data, options) => {
      schemas.checkSetData(fullPath(path), data);
      return await zk.setData(path, data, options);
    },
    update: (path: string, updater: Updater, options?: UpdateOptions) => {
      const create = options?.create;
      const mode = typeof create === 'object' ? create.mode : undefined;
      const validatedUpdater = async (data: Uint8Array | null, stat: Stat | undefined): Promise<Data | undefined> => {
        const wanted = await updater(data, stat);
        if (wanted !== undefined) {
          if (stat === undefined) schemas.checkCreate(fullPath(path), wanted, mode ?? 'persistent');
          else schemas.checkSetData(fullPath(path), wanted);
        }
        return wanted;
      };
      return zk.update(path, validatedUpdater, options);
    },
    delete: async (path, options) => {
      schemas.checkDelete(fullPath(path));
      await zk.delete(path, options);
    },
    deleteRecursive: async (path, options) => {
      schemas.checkDeleteRecursive(fullPath(path));
      return await zk.deleteRecursive(path, options);
    },
    ensurePath: async (path, options) => {
      schemas.checkParent(fullPath(path));
      await zk.ensurePath(path, options);
    },
    multi: async (ops, options) => {
      ops.forEach((each, index) => validateOp(each, index));
      return await zk.multi(ops, options);
    },
  };
  const validateOp = (each: WriteOp, index: number) => {
    try {
      checkOp(schemas, fullPath(each.path), each);
    } catch (error) {
      if (!(error instanceof RecipeError)) throw error;
      throw new RecipeError(error.code, `ops[${index}], ${each.op} ${each.path}: ${error.message}`, { cause: error });
    }
  };
  // The methods of a client use its private fields, which neither a subclass nor an object that
  // inherits from it would have.
  return new Proxy(zk, {
    get: (target, name) => {
      if (Object.hasOwn(guarded, name)) return guarded[name as keyof GuardedMethods];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function checkOp(schemas: SchemaRules, path: string, each: WriteOp): void {
  switch (each.op) {
    case 'create':
      schemas.checkCreate(path, each.data ?? null, each.mode ?? 'persistent');
      break;
    case 'setData':
      schemas.checkSetData(path, each.data);
      break;
    case 'delete':
      schemas.checkDelete(path);
      break;
    case 'check':
      break;
    default:
      each satisfies never;
  }
}
