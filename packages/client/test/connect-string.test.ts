import { describe, expect, it } from 'vitest';
import { ConnectStringError, formatServer, parseConnectString } from '../src/connect-string.ts';

describe('C2-3, B34: a connect string', () => {
  it.each([
    ['127.0.0.1:4545', ['127.0.0.1:4545'], ''],
    ['127.0.0.1:3000,127.0.0.1:3001,127.0.0.1:3002', ['127.0.0.1:3000', '127.0.0.1:3001', '127.0.0.1:3002'], ''],
    ['127.0.0.1:4545/app/a', ['127.0.0.1:4545'], '/app/a'],
    ['127.0.0.1:3000,127.0.0.1:3001,127.0.0.1:3002/app/a', ['127.0.0.1:3000', '127.0.0.1:3001', '127.0.0.1:3002'], '/app/a'],
    ['zk', ['zk:2181'], ''],
    ['zk1,zk2:99', ['zk1:2181', 'zk2:99'], ''],
    ['zk/', ['zk:2181'], ''],
    [' zk1 , zk2 ', ['zk1:2181', 'zk2:2181'], ''],
    ['zk1,,zk2,', ['zk1:2181', 'zk2:2181'], ''],
    ['[::1]', ['[::1]:2181'], ''],
    ['[2001:db8::1]:2182,[::1]:1/a', ['[2001:db8::1]:2182', '[::1]:1'], '/a'],
    ['zk:65535', ['zk:65535'], ''],
  ])('is parsed into servers and chroot: %s', (text, servers, chroot) => {
    const parsed = parseConnectString(text);
    expect(parsed.servers.map(formatServer)).toEqual(servers);
    expect(parsed.chroot).toBe(chroot);
    expect(parsed.srvName).toBe(undefined);
  });

  it.each([
    ['srv:_zookeeper._tcp.example.com', '_zookeeper._tcp.example.com', ''],
    ['srv:_client._tcp.zk-headless.default.svc.cluster.local./app/a', '_client._tcp.zk-headless.default.svc.cluster.local.', '/app/a'],
    [' srv:zookeeper ,', 'zookeeper', ''],
  ])('B37, D19: %s names a service', (text, srvName, chroot) => {
    expect(parseConnectString(text)).toEqual({ servers: [], srvName, chroot });
  });

  it('B37: may name a host "srv"', () => {
    expect(parseConnectString('srv:2181,srv').servers.map(formatServer)).toEqual(['srv:2181', 'srv:2181']);
    expect(() => parseConnectString('srv:99999')).toThrow('the port of "srv:99999" is not a number from 1 to 65535');
  });

  it.each([
    ['', 'it has no host'],
    ['/a', 'it has no host'],
    [' , ', 'it has no host'],
    ['zk:', 'the port of "zk:" is not a number from 1 to 65535'],
    ['zk:0', 'the port of "zk:0" is not a number'],
    ['zk:65536', 'is not a number from 1 to 65535'],
    ['zk:2e3', 'is not a number'],
    ['zk:-1', 'is not a number'],
    [':2181', '":2181" has no host before its port'],
    ['::1', '"::1" has several colons; write an IPv6 address in brackets, as in [::1]:2181'],
    ['[::1', 'has an opening bracket without a closing one'],
    ['[]:1', 'has empty brackets'],
    ['[::1]x', 'has something other than a port after its bracket'],
    ['srv:', '"srv:" must be followed by a name, as in srv:_zookeeper._tcp.example.com'],
    [
      'srv:_zk._tcp.test:2181',
      '"_zk._tcp.test:2181" is not an SRV name such as _zookeeper._tcp.example.com; the records contain the ports',
    ],
    ['srv:_zk._tcp.test,zk1', '"srv:_zk._tcp.test" names all servers, so it cannot be combined with others'],
    ['zk/a/', 'the chroot /a/ must not end with "/"'],
    ['zk/a//b', 'the chroot /a//b must not have an empty name'],
  ])('%s is rejected with a message that names the invalid part and the remedy', (text, complaint) => {
    expect(() => parseConnectString(text)).toThrow(ConnectStringError);
    expect(() => parseConnectString(text)).toThrow(complaint);
    expect(() => parseConnectString(text)).toThrow('Write it as host:port,host:port/chroot.');
  });

  it('takes a second host after the chroot as part of the path, as ZooKeeper does', () => {
    expect(parseConnectString('zk1/a,zk2')).toEqual({ servers: [{ host: 'zk1', port: 2181 }], service: undefined, chroot: '/a,zk2' });
  });
});
