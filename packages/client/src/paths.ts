/** Functions on paths of znodes. */

export function childPath(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf('/')));
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** For `/a/b/c`: `/a`, `/a/b`. */
export function ancestorsOf(path: string): string[] {
  const paths: string[] = [];
  for (let slash = path.indexOf('/', 1); slash !== -1; slash = path.indexOf('/', slash + 1)) paths.push(path.slice(0, slash));
  return paths;
}
