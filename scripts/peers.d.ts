export declare const repositoryFolder: string;
export declare const cacheFolder: string;

export interface JavaPeer {
  readonly classpath: string;
}
export interface PythonPeer {
  readonly version: string;
  readonly pythonPath: string;
}
export interface NpmPeer {
  readonly version: string;
  readonly packageFolder: string;
}
export interface LibraryPeer {
  readonly include: string;
  readonly library: string;
}
export interface SourcePeer extends LibraryPeer {
  readonly source: string;
}
export interface PeerFacts {
  'zookeeper-3.9.5': JavaPeer;
  'zookeeper-3.8.0': JavaPeer;
  'zookeeper-3.5.10': JavaPeer;
  curator: JavaPeer;
  kazoo: PythonPeer;
  'kazoo-suite': PythonPeer;
  'zookeeper-c': LibraryPeer;
  'zookeeper-c-suite': SourcePeer;
  'node-zookeeper-client': NpmPeer;
  'zookeeper-npm': NpmPeer;
}
export type PeerName = keyof PeerFacts;
export type Peer<Facts> =
  | ({ readonly name: PeerName; readonly installed: true; readonly folder: string } & Facts)
  | { readonly name: PeerName; readonly installed: false; readonly reason: string };

export declare function ensurePeers<Name extends PeerName>(
  names: readonly Name[],
  options?: { log?: (line: string) => void },
): Promise<{ [N in Name]: Peer<PeerFacts[N]> }>;
