// Messages to the incoming webhooks of chats. Text alone: nothing in them can be pressed.

import { request } from 'undici';

export interface ChatMessage {
  readonly url: string;
  readonly subject: string;
  readonly lines: readonly string[];
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

const BODY_MAX_BYTES = 16 * 1024;

/**
 * Slack takes `{"text": …}`, in which three characters are escaped (docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
 * and "Formatting message text": &, < and >).
 * @returns the status · @throws where none came in time
 */
export function postToSlack(message: ChatMessage): Promise<number> {
  const text = [message.subject, ...message.lines].map(escaped).join('\n');
  return post(message, { text });
}

/**
 * Teams takes a message with one Adaptive Card from a workflow "When a Teams webhook request is received"
 * (learn.microsoft.com/power-automate/teams, adaptivecards.io 1.2: `TextBlock`).
 * @returns the status · @throws where none came in time
 */
export function postToTeams(message: ChatMessage): Promise<number> {
  const block = (text: string) => ({ type: 'TextBlock', text, wrap: true });
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.2',
    body: [{ ...block(message.subject), weight: 'bolder' }, ...message.lines.map(block)],
  };
  return post(message, {
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }],
  });
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Nothing is followed. */
async function post({ signal, timeoutMs, url }: ChatMessage, body: object): Promise<number> {
  const answer = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  await answer.body.dump({ limit: BODY_MAX_BYTES });
  return answer.statusCode;
}
