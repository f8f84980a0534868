import { describe, expect, test } from 'vitest';
import { type Host, Hosts } from '../../src/resident/hosts.ts';

class FakeHost implements Host {
  isClosed = false;
  open: boolean | Error = false;

  async isOpen(): Promise<boolean> {
    if (this.open instanceof Error) throw this.open;
    return this.open;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }

  async abort(): Promise<void> {
    this.isClosed = true;
  }
}

function setup() {
  const reports: string[] = [];
  const hosts = new Hosts<FakeHost>((message) => reports.push(message));
  const made: FakeHost[] = [];
  const open = async (): Promise<FakeHost> => {
    const host = new FakeHost();
    made.push(host);
    return host;
  };
  /** A client that stays until it is told to go. */
  const client = (key: string, server = 'server') => {
    let leave: () => void = () => {};
    const stays = new Promise<void>((resolve) => {
      leave = resolve;
    });
    let arrived: () => void = () => {};
    const isThere = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const gone = hosts.use({ key, server }, open, async () => {
      arrived();
      await stays;
    });
    return {
      isThere,
      leave: async (): Promise<void> => {
        leave();
        await gone;
      },
    };
  };
  return { hosts, made, client, reports };
}

describe('hosts of servers', () => {
  test('one for all clients that ask in the same way, closed after the last of them', async () => {
    const { client, hosts, made } = setup();
    const [one, other] = [client('a'), client('a')];
    await Promise.all([one.isThere, other.isThere]);
    expect(made).toHaveLength(1);
    await one.leave();
    expect(made[0]?.isClosed).toBe(false);
    await other.leave();
    expect(made[0]?.isClosed).toBe(true);
    expect(hosts.size).toBe(0);
  });

  test('one with open work stays until that is done', async () => {
    const { client, hosts, made } = setup();
    const one = client('a');
    await one.isThere;
    const [host] = made;
    if (host === undefined) throw new Error('No host was made.');
    host.open = true;
    await one.leave();
    await hosts.sweep();
    expect(host.isClosed).toBe(false);
    host.open = false;
    await hosts.sweep();
    expect(host.isClosed).toBe(true);
  });

  test('where the ledger cannot be read, work may be open', async () => {
    const { client, made, reports } = setup();
    const one = client('a');
    await one.isThere;
    for (const host of made) host.open = new Error('the store is down');
    await one.leave();
    expect(made[0]?.isClosed).toBe(false);
    expect(reports).toEqual(['Whether work is open could not be read: Error: the store is down']);
  });

  test('of several for one server without clients the last is enough; one with a client is never ended', async () => {
    const { client, made } = setup();
    const clients = [client('a'), client('b'), client('c')];
    await Promise.all(clients.map(({ isThere }) => isThere));
    for (const host of made) host.open = true;
    await clients[0]?.leave();
    expect(made.map(({ isClosed }) => isClosed)).toEqual([true, false, false]);
    await clients[2]?.leave();
    expect(made.map(({ isClosed }) => isClosed)).toEqual([true, false, false]);
    await clients[1]?.leave();
    expect(made.map(({ isClosed }) => isClosed)).toEqual([true, true, false]);
  });

  test('a host that cannot be made is made again for the next client', async () => {
    const { hosts } = setup();
    const spec = { key: 'a', server: 's' };
    await expect(
      hosts.use(
        spec,
        () => Promise.reject(new Error('no')),
        async () => {},
      ),
    ).rejects.toThrow('no');
    let isUsed = false;
    await hosts.use(
      spec,
      async () => new FakeHost(),
      async () => {
        isUsed = true;
      },
    );
    expect(isUsed).toBe(true);
  });
});
