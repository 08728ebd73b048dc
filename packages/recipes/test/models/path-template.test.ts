import { describe, expect, it } from 'vitest';
import { PathTemplate } from '../../src/index.ts';

describe('a path template', () => {
  const orders = new PathTemplate('/users/{user}/orders/{order}');

  it('converts parameters to paths, and paths to parameters', () => {
    expect(orders.paramNames).toEqual(['user', 'order']);
    expect(orders.path({ user: 7, order: 'a b' })).toBe('/users/7/orders/a b');
    expect(orders.parentPath({ user: 7 })).toBe('/users/7/orders');
    expect(orders.match('/users/7/orders/a b')).toEqual({ user: '7', order: 'a b' });
    for (const other of ['/', '/users', '/users/7/orders', '/users/7/orders/a/b', '/users/7/items/a', '/people/7/orders/a'])
      expect(orders.match(other), other).toBe(undefined);
    expect(new PathTemplate('/settings').path()).toBe('/settings');
    expect(new PathTemplate('/settings').parentPath()).toBe('/');
    expect(new PathTemplate('/{zone}').match('/x')).toEqual({ zone: 'x' });
  });

  it('reports whether a path that matches it can be below a given path', () => {
    expect(['/', '/users', '/users/9', '/users/9/orders'].every((path) => orders.canMatchBelow(path))).toBe(true);
    expect(['/people', '/users/9/orders/1', '/users/9/items'].some((path) => orders.canMatchBelow(path))).toBe(false);
  });

  it('rejects a parameter that cannot be the name of a znode', () => {
    for (const user of ['', '.', '..', 'a/b'])
      expect(() => orders.path({ user, order: 1 })).toThrow(
        new TypeError(`"${user}" cannot be the user of /users/{user}/orders/{order}: it is not a name of a znode`),
      );
    expect(() => orders.path({ user: 1 } as never)).toThrow(new TypeError('/users/{user}/orders/{order} needs the parameter order'));
  });

  it.each([
    ['', 'it must begin with a slash and a name'],
    ['/', 'it must begin with a slash and a name'],
    ['users', 'it must begin with a slash and a name'],
    ['/a//b', 'a name is empty'],
    ['/a/', 'a name is empty'],
    ['/a/b-{id}', 'in "b-{id}" the braces do not enclose the whole name'],
    ['/a/{}', 'in "{}" the braces do not enclose the whole name'],
    ['/a/{id}/{id}', 'the parameter id occurs twice'],
  ])('is rejected when it is "%s", with the reason', (template, why) => {
    expect(() => new PathTemplate(template)).toThrow(
      new TypeError(`"${template}" is not a template of a path: ${why}; write it as /users/{user}`),
    );
  });
});
