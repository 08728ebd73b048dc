/**
 * Data of instances as Curator 5.9.0 writes them: the output of `JsonInstanceSerializer.serialize`,
 * run on OpenJDK, for payload classes Void, String, a bean, Map, List and Long. The first three
 * with its default, the others with `compatibleSerializationMode` false.
 */
export const curatorInstances = [
  '{"name":"api","id":"7f6c","address":"10.0.0.1","port":8080,"sslPort":null,"payload":null,"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":null}',
  '{"name":"api","id":"7f6c","address":"10.0.0.1","port":8080,"sslPort":8443,"payload":"hello","registrationTimeUTC":1700000000000,"serviceType":"STATIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},{"value":":","variable":false},{"value":"port","variable":true},{"value":"/x","variable":false}]}}',
  '{"name":"api","id":"7f6c","address":"10.0.0.1","port":8080,"sslPort":null,"payload":{"@class":"Rec$Payload","v":"x"},"registrationTimeUTC":1700000000000,"serviceType":"PERMANENT","uriSpec":null}',
  '{"name":"api","id":"7f6c","address":"10.0.0.1","port":8080,"sslPort":null,"payload":{"@class":"java.util.HashMap","a":1},"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC_SEQUENTIAL","uriSpec":null,"enabled":false}',
  '{"name":"api","id":"7f6c","address":"10.0.0.1","port":8080,"sslPort":null,"payload":["java.util.ArrayList",["a","b"]],"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":null,"enabled":true}',
  '{"name":"api","id":"7f6c","address":"10.0.0.1","port":8080,"sslPort":null,"payload":["java.lang.Long",5],"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":null,"enabled":true}',
] as const;
