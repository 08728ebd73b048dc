/** The output of `mntr` of a whole running server, through client, core, log and metrics. */
import { describe, expect, it } from 'vitest';
import { VirtualServer } from './support/virtual-server.ts';

async function metricsOf(server: VirtualServer): Promise<Map<string, string>> {
  const lines = (await server.word('mntr')).trimEnd().split('\n');
  return new Map(lines.map((line) => line.split('\t') as [string, string]));
}

function only(metrics: ReadonlyMap<string, string>, pattern: RegExp): Record<string, number> {
  return Object.fromEntries([...metrics].filter(([key]) => pattern.test(key)).map(([key, value]) => [key, Number(value)]));
}

describe('mntr', () => {
  it('counts reads, writes and quotas by namespace', async () => {
    const server = await VirtualServer.start(['4lw.commands.whitelist=mntr,srst', 'enforceQuota=true']);
    const client = await server.join();
    await client.create('/app');
    await client.create('/zookeeper/quota/app');
    await client.create('/zookeeper/quota/app/zookeeper_limits');
    await client.call('setData', {
      path: '/zookeeper/quota/app/zookeeper_limits',
      data: Buffer.from('count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=3'),
      version: -1,
    });
    await client.create('/zookeeper/quota/app/zookeeper_stats');
    expect((await client.call('setData', { path: '/app', data: Buffer.alloc(5), version: -1 })).err).toBe('Ok');
    expect((await client.call('setData', { path: '/app', data: Buffer.alloc(11), version: -1 })).err).toBe('QuotaExceeded');
    await client.call('getData', { path: '/app', watch: false });
    await client.call('exists', { path: '/app', watch: false });
    expect(only(await metricsOf(server), /_app_.*_per_namespace$/)).toEqual({
      zk_app_quota_count_limit_per_namespace: 3,
      zk_app_quota_bytes_limit_per_namespace: 10,
      zk_app_quota_count_usage_per_namespace: 1,
      zk_app_quota_bytes_usage_per_namespace: 5,
      zk_app_quota_exceeded_error_per_namespace: 1,
      zk_avg_app_write_per_namespace: 6.5,
      zk_min_app_write_per_namespace: 4,
      zk_max_app_write_per_namespace: 9,
      zk_cnt_app_write_per_namespace: 2,
      zk_sum_app_write_per_namespace: 13,
      zk_avg_app_read_per_namespace: 74.5,
      zk_min_app_read_per_namespace: 72,
      zk_max_app_read_per_namespace: 77,
      zk_cnt_app_read_per_namespace: 2,
      zk_sum_app_read_per_namespace: 149,
    });
    await server.word('srst');
    expect(only(await metricsOf(server), /_app_read_per_namespace$/)).toMatchObject({ zk_cnt_app_read_per_namespace: 0 });
  });

  it('counts every txn once in the log and once in the tree', async () => {
    const server = await VirtualServer.start('4lw.commands.whitelist=mntr');
    const client = await server.join();
    await client.create('/a');
    for (let n = 0; n < 20; n++) client.send('setData', { path: '/a', data: null, version: -1 });
    await server.settle();
    const metrics = await metricsOf(server);
    // The session, the create and the rest.
    const txns = 22;
    expect(only(metrics, /^zk_(cnt|sum)_(sync_processor|propagation|prep_process_time|fsync)/)).toMatchObject({
      zk_sum_sync_processor_batch_size: txns,
      zk_cnt_sync_processor_queue_time_ms: txns,
      zk_cnt_sync_processor_queue_and_flush_time_ms: txns,
      zk_cnt_propagation_latency: txns,
      zk_cnt_prep_process_time: txns,
    });
    expect(only(metrics, /^zk_outstanding_changes/)).toEqual({ zk_outstanding_changes_queued: 22, zk_outstanding_changes_removed: 22 });
    for (const name of ['sync_processor_queue_size', 'fsynctime']) {
      expect(metrics.get(`zk_cnt_${name}`)).toBe(metrics.get('zk_cnt_sync_processor_batch_size'));
    }
    expect(metrics.get('zk_prep_processor_request_queued')).toBe(String(txns));
  });

  it('counts the bytes of watch events', async () => {
    const server = await VirtualServer.start('4lw.commands.whitelist=mntr');
    const client = await server.join();
    await client.call('exists', { path: '/a', watch: true });
    await client.create('/a');
    // Header 16, type, state, and the path with its length.
    expect((await metricsOf(server)).get('zk_watch_bytes')).toBe(String(16 + 4 + 4 + 4 + 2));
  });

  it('counts no latency for a resumed session', async () => {
    const server = await VirtualServer.start('4lw.commands.whitelist=mntr');
    const client = await server.join();
    const before = only(await metricsOf(server), /^zk_(cnt_updatelatency|packets_sent|connection_revalidate_count)$/);
    const other = await server.dial();
    await other.shakeHands(10_000, client.session, client.password);
    const after = only(await metricsOf(server), /^zk_(cnt_updatelatency|packets_sent|connection_revalidate_count)$/);
    expect(before).toMatchObject({ zk_cnt_updatelatency: 1, zk_connection_revalidate_count: 0 });
    expect(after).toMatchObject({ zk_cnt_updatelatency: 1, zk_connection_revalidate_count: 1 });
  });
});
