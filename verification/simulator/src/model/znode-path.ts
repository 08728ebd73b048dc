/**
 * Paths of znodes. In the model the parent of a top-level znode is '', which is a second name of
 * the root.
 */

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** All paths above this one, the nearest first. */
export function ancestorsOf(path: string): string[] {
  const ancestors: string[] = [];
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) ancestors.push(path.slice(0, at));
  if (path.startsWith('/') && path !== '/') ancestors.push('/');
  return ancestors;
}

/** The rules of a well-formed path, component by component and UTF-16 unit by UTF-16 unit. */
export function isValidPath(path: string): boolean {
  if (path === '/') return true;
  if (!path.startsWith('/') || path.endsWith('/')) return false;
  for (const name of path.slice(1).split('/')) {
    if (name === '' || name === '.' || name === '..') return false;
  }
  for (let i = 0; i < path.length; i++) {
    const unit = path.charCodeAt(i);
    if (unit <= 0x1f || (unit >= 0x7f && unit <= 0x9f) || (unit >= 0xd800 && unit <= 0xf8ff) || unit >= 0xfff0) return false;
  }
  return true;
}
