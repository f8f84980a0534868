// From who is to be told to how: each way of telling as the engine knows it.

import { NOTICE_FOOT, noticeLines, noticeSubject, type ToldNotice } from './core/notice-wording.ts';
import { postToSlack, postToTeams } from './destination/chat.ts';
import { sendMail } from './destination/mail.ts';
import { postSigned } from './destination/post.ts';
import type { Listener, Message } from './engine/webhooks.ts';

/** One that is told, with its secrets at hand. */
export type ListenerParts =
  | {
      readonly kind: 'webhook';
      readonly url: string;
      /** `whsec_` and base64. */
      readonly secret: string;
      /** Whose operations it is told of; of causes in the queue, where absent. */
      readonly requester?: string;
    }
  | { readonly kind: 'slack' | 'teams'; readonly url: string; readonly everyMs: number }
  | {
      readonly kind: 'email';
      readonly smtp: string;
      readonly from: string;
      readonly to: readonly string[];
      readonly everyMs: number;
    };

export function listenerOf(parts: ListenerParts): Listener {
  switch (parts.kind) {
    case 'webhook':
      return webhook(parts);
    case 'slack':
    case 'teams':
      return chat(parts);
    case 'email':
      return mail(parts);
  }
}

function webhook({ requester, secret, url }: Extract<ListenerParts, { kind: 'webhook' }>): Listener {
  return {
    // Of those that were told of causes before there were others, so that nothing is told anew.
    address: requester === undefined ? url : JSON.stringify(['settled', requester, url]),
    what: requester === undefined ? 'A webhook' : `The callback of ${requester}`,
    ...(requester === undefined ? {} : { requester }),
    gatherMs: 0,
    async tell(messages, { at, signal, timeoutMs }) {
      const timestamp = Math.floor(at / 1_000);
      for (const { body, id } of messages)
        taken(await postSigned({ url, secret, id, timestamp, body, timeoutMs, signal }));
    },
  };
}

function chat({ everyMs, kind, url }: Extract<ListenerParts, { kind: 'slack' | 'teams' }>): Listener {
  const post = kind === 'slack' ? postToSlack : postToTeams;
  return {
    address: JSON.stringify([kind, url]),
    what: kind === 'slack' ? 'Slack' : 'Teams',
    gatherMs: everyMs,
    async tell(messages, { signal, timeoutMs }) {
      taken(await post({ url, ...wordsOf(messages), timeoutMs, signal }));
    },
  };
}

function mail({ everyMs, from, smtp, to }: Extract<ListenerParts, { kind: 'email' }>): Listener {
  return {
    address: JSON.stringify(['email', smtp, from, to]),
    what: 'The mail server',
    gatherMs: everyMs,
    async tell(messages, { timeoutMs }) {
      await sendMail({ smtp, from, to, ...wordsOf(messages), id: messages[0]?.id ?? '', timeoutMs });
    },
  };
}

function wordsOf(messages: readonly Message[]): {
  readonly subject: string;
  readonly lines: readonly string[];
} {
  const notices: readonly ToldNotice[] = messages.flatMap(({ notice }) => notice ?? []);
  return { subject: noticeSubject(notices), lines: [...noticeLines(notices), NOTICE_FOOT] };
}

/** Only an answer of 2xx counts as taken. */
function taken(status: number): void {
  if (status < 200 || status >= 300) throw new Error(`it answered with ${status}`);
}
