// Mail by SMTP, as plain text. The library is loaded when the first mail is sent.

export interface Mail {
  /** `smtp://` or `smtps://`, with user and password where the server wants them. */
  readonly smtp: string;
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly lines: readonly string[];
  /** The same for every try, by which a reader's program knows what it has already. */
  readonly id: string;
  readonly timeoutMs: number;
}

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Resolves when the server has taken it for all that it is to. @throws where it has not */
export async function sendMail(mail: Mail): Promise<void> {
  const { createTransport } = await import('nodemailer');
  const { hostname, password, port, protocol, username } = new URL(mail.smtp);
  const isSecure = protocol === 'smtps:';
  const transport = createTransport({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (isSecure ? 465 : 587) : Number(port),
    secure: isSecure,
    // In the clear only to this machine.
    requireTLS: !isSecure && !LOOPBACK_HOST.test(hostname),
    connectionTimeout: mail.timeoutMs,
    greetingTimeout: mail.timeoutMs,
    socketTimeout: mail.timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(username === ''
      ? {}
      : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
  });
  try {
    const sent = await transport.sendMail({
      from: mail.from,
      to: [...mail.to],
      subject: mail.subject,
      text: mail.lines.join('\n\n'),
      messageId: `<${mail.id}@counterfoil.invalid>`,
    });
    if (sent.rejected.length > 0) throw new Error(`${sent.rejected.length} of the addresses were refused`);
  } finally {
    transport.close();
  }
}
