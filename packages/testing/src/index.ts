export { TestServer, type TestServerOptions } from './test-server.ts';
