export declare const repositoryFolder: string;
export declare const cacheFolder: string;

export interface JavaProgram {
  readonly classpath: string;
}
export interface PythonProgram {
  readonly version: string;
  readonly pythonPath: string;
}
export interface NpmPackage {
  readonly version: string;
  readonly packageFolder: string;
}
export interface CLibrary {
  readonly include: string;
  readonly library: string;
}
export interface SourcePackage extends CLibrary {
  readonly source: string;
}
export interface ForeignPrograms {
  'zookeeper-3.9.5': JavaProgram;
  'zookeeper-3.8.0': JavaProgram;
  'zookeeper-3.5.10': JavaProgram;
  curator: JavaProgram;
  kazoo: PythonProgram;
  'kazoo-suite': PythonProgram;
  clickhouse: PythonProgram;
  'zookeeper-c': CLibrary;
  'zookeeper-c-suite': SourcePackage;
  'node-zookeeper-client': NpmPackage;
  'zookeeper-npm': NpmPackage;
}
export type ForeignProgramName = keyof ForeignPrograms;
export type ForeignProgram<Facts> =
  | ({ readonly name: ForeignProgramName; readonly installed: true; readonly folder: string } & Facts)
  | { readonly name: ForeignProgramName; readonly installed: false; readonly reason: string };

export declare function ensureForeignPrograms<Name extends ForeignProgramName>(
  names: readonly Name[],
  options?: { log?: (line: string) => void },
): Promise<{ [N in Name]: ForeignProgram<ForeignPrograms[N]> }>;
