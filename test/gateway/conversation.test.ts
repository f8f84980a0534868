// One request that may be asked back: which answer goes to which question, and who is told what comes next.

import { expect, test } from 'vitest';
import type { Question } from '../../src/destination/mcp/asking.ts';
import { Conversation } from '../../src/gateway/conversation.ts';

const question = (key: string): Question => ({ key, method: 'elicitation/create', params: undefined });
const answers = (...pairs: readonly (readonly [string, string])[]) => new Map(pairs);

function setup() {
  const asked: (readonly string[])[] = [];
  const conversation = new Conversation('tools/call', 'bound', () => {});
  const wait = (): void =>
    conversation.wait({
      message: () => {},
      asks: (questions) => asked.push(questions.map(({ key }) => key)),
      ends: () => {},
    });
  wait();
  return { conversation, asked, wait };
}

test('an answer that came with the call is the answer to its first question, which nobody is asked', async () => {
  const { conversation, asked } = setup();
  conversation.answerUnasked(answers(['name', '"Ada"'], ['other', '1']));
  expect(await conversation.ask([question('name')])).toEqual(answers(['name', '"Ada"']));
  expect(asked).toEqual([]);
  expect(conversation.leg).toBe(2);
});

test('what the call left out is asked for', async () => {
  const { conversation, asked, wait } = setup();
  conversation.answerUnasked(answers(['name', '"Ada"']));
  const answered = conversation.ask([question('name'), question('age')]);
  expect(asked).toEqual([['age']]);
  expect(conversation.resume(1, answers(['age', '30']))).toBe(false);
  expect(conversation.resume(2, answers(['age', '30']))).toBe(true);
  wait();
  expect(await answered).toEqual(answers(['name', '"Ada"'], ['age', '30']));
});

test.each([
  ['once the first question was about something else', 'age'],
  ['once it was used', 'name'],
])('an answer that came with the call is none any more %s', async (_name, first) => {
  const { conversation, asked, wait } = setup();
  conversation.answerUnasked(answers(['name', '"Ada"']));
  const before = conversation.ask([question(first)]);
  if (asked.length > 0) {
    expect(conversation.resume(1, answers([first, '1']))).toBe(true);
    wait();
  }
  await before;
  void conversation.ask([question('name')]);
  expect(asked.at(-1)).toEqual(['name']);
  expect(conversation.isAsking).toBe(true);
});

test('an answer without a state counts for the first question alone: a later one may be another', async () => {
  const { conversation, asked, wait } = setup();
  const first = conversation.ask([question('sure')]);
  conversation.answerUnasked(answers(['other', '1']));
  expect(conversation.leg).toBe(1);
  conversation.answerUnasked(answers(['sure', '"yes"']));
  expect(await first).toEqual(answers(['sure', '"yes"']));
  wait();
  const second = conversation.ask([question('sure')]);
  conversation.answerUnasked(answers(['sure', '"yes"']));
  expect(asked).toEqual([['sure'], ['sure']]);
  expect(conversation.isAsking).toBe(true);
  expect(conversation.resume(2, answers(['sure', '"no"']))).toBe(true);
  expect(await second).toEqual(answers(['sure', '"no"']));
});

test('a state alone is an answer only where nothing was asked', async () => {
  const { conversation, asked } = setup();
  const nothing = conversation.ask([]);
  expect(asked).toEqual([[]]);
  conversation.answerUnasked(answers(['', '{}']));
  expect(conversation.leg).toBe(1);
  expect(conversation.resume(1, answers(['', '{}']))).toBe(true);
  expect(await nothing).toEqual(new Map());
});

test('behind a task nobody is asked: what is open is found under names of its own, and answered in parts', async () => {
  const { conversation, asked } = setup();
  conversation.giveTask('{}');
  const first = conversation.ask([question('name'), question('age')]);
  const names = (): readonly string[] => conversation.questionsOfTask.map(({ key }) => key);
  expect(names()).toEqual(['1.name', '1.age']);
  conversation.answerTask(answers(['1.name', '"Ada"'], ['name', '"Bob"'], ['2.age', '1']));
  expect(names()).toEqual(['1.age']);
  conversation.answerTask(answers(['1.age', '30']));
  expect(await first).toEqual(answers(['name', '"Ada"'], ['age', '30']));
  const second = conversation.ask([question('name')]);
  expect(names()).toEqual(['2.name']);
  // A name that was answered is that of nothing any more, and no state of before counts.
  conversation.answerTask(answers(['1.name', '"Eve"']));
  expect(conversation.resume(2, answers(['name', '"Eve"']))).toBe(false);
  expect(conversation.isAsking).toBe(false);
  conversation.leaveTask();
  expect(await second).toBeUndefined();
  expect(asked).toEqual([]);
});

test('behind a task a state alone is come back with by itself', async () => {
  const { conversation } = setup();
  conversation.giveTask('{}');
  expect(await conversation.ask([])).toEqual(new Map());
});
