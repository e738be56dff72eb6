/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_SESSION_INTERNAL_H
#define BECALM_H2_H2_SESSION_INTERNAL_H

/* Types and functions that the files of a session share, in reading order: h2_session.c has its beginning and end;
 * h2_stream.c its streams and their states; h2_flow.c the windows; h2_settings.c the settings of both sides; h2_queue.c
 * the frames that wait to be written; h2_send.c makes frames, and h2_write.c writes them as bytes; h2_receive.c splits
 * received bytes into frames, h2_take.c acts on them, and h2_take_head.c on heads. Heads are packed by h2_packer.c, and
 * unpacked by nghttp2. */

#include "h2_frame.h"
#include "h2_guard.h"
#include "h2_head.h"
#include "h2_packer.h"

#include "loop/bytes.h"

#include <nghttp2/nghttp2.h>

#define H2_DRAINED           (16u * 1024) /* of a body wait: more is welcome */
#define H2_ACKS_MAX          1000u        /* acknowledgements that wait for a peer that does not read */
#define H2_CONTINUATIONS_MAX 8u           /* of one head */
#define H2_SETTINGS_MAX      32u          /* parameters in one frame */
#define H2_TABLE_BYTES       4096u        /* of each of the two tables of HPACK */
#define H2_STREAM_SLOTS      16u          /* by which streams are found; a power of 2 */
#define H2_LENGTH_UNKNOWN    (-1)

/* Error codes that only the codec itself says. */
enum { H2_FLOW_CONTROL_ERROR = 3, H2_STREAM_CLOSED = 5, H2_FRAME_SIZE_ERROR = 6, H2_COMPRESSION_ERROR = 9 };

/* A stream's state as the frames say that were read and written (RFC 9113, 5.1). Idle streams have no struct.
 * h2_stream_enter() alone changes it. */
enum h2_state {
    H2_STATE_OPEN,
    H2_STATE_SAID,  /* half-closed (local): this side's END_STREAM was written */
    H2_STATE_HEARD, /* half-closed (remote): the peer's has come */
    H2_STATE_CLOSED
};

struct h2_stream {
    struct h2_session *session;
    void *owner;            /* NULL: the owner has gone */
    struct h2_stream *next; /* of all streams; of those that are closed and wait to be freed */
    struct h2_stream **link;
    struct h2_stream *chain;      /* the next one in its slot */
    struct h2_stream *queue_next; /* of those that have something to be written */
    struct h2_stream **queue_link;
    struct bytes out;      /* the part of the body that is not sent yet */
    struct bytes trailers; /* behind it, packed */
    becalm_ns opened_at;
    uint64_t head_at; /* where a request's head begins in all that was ever queued */
    uint64_t end_at;  /* where the head that ends it is over, if end_queued */
    int32_t id;
    int32_t window;       /* bytes that this side may send; SETTINGS can make it negative */
    int32_t peers_window; /* and the peer */
    uint32_t untaken;     /* received bytes that the owner has not taken: the peer's window stays closed for them */
    uint32_t untold;      /* bytes that the owner has taken and no WINDOW_UPDATE has reported yet */
    int64_t expected;     /* the length of its body; H2_LENGTH_UNKNOWN */
    uint64_t received;    /* of it */
    enum h2_state state;
    bool answered;   /* a client's: its answer's head has come */
    bool said;       /* a server's: the answer's head was said */
    bool to_head;    /* a client's: the request is a HEAD */
    bool left;       /* a client's: h2_leave(): its bytes are dropped, and its window stays closed */
    bool out_ended;  /* nothing more is said */
    bool end_queued; /* a head in the queue is the last of it, or it has been passed on */
    bool queued;     /* the stream is in the queue of streams that have bytes to write */
    bool failed;     /* memory ran out while it queued bytes */
    bool full;       /* more waits than H2_DRAINED */
    bool drained;    /* it was full and is not any more; the owner must be told */
};

/* The meaning of the next received bytes. */
enum h2_reading {
    H2_READS_PREFACE,
    H2_READS_HEAD,    /* of a frame */
    H2_READS_PADDING, /* how much there is */
    H2_READS_DEPENDS, /* the fields of a priority, before a head */
    H2_READS_BLOCK,   /* of a head */
    H2_READS_DATA,
    H2_READS_PART, /* a payload, or a parameter of SETTINGS, of fixed length */
    H2_READS_REST  /* bytes that are dropped */
};

#define H2_PART_MAX 24u /* the preface is the longest */
struct h2_reader {
    enum h2_reading reading;
    struct h2_frame frame;
    uint32_t left;    /* of the payload, without the padding */
    uint32_t padding; /* behind it */
    uint8_t have;     /* of the part that is coming */
    uint8_t part[H2_PART_MAX];
};

/* The use of the head that is being received. */
enum h2_heading {
    H2_HEADING_NONE, /* there is none */
    H2_HEADING_TAKEN,
    H2_HEADING_DROPPED /* the head is unpacked, because the HPACK table must stay in step, and then dropped */
};

/* The latest streams that a client has opened, a bit for each, the newest in bit 0: they tell which streams are over.
 * Older streams are forgotten. */
struct h2_past {
    int32_t highest;
    uint64_t ended;   /* by the peer itself, and over */
    uint64_t skipped; /* never opened */
};

struct h2_session {
    const struct h2_calls *calls;
    void *owner;
    struct h2_scratch *scratch;
    nghttp2_mem memory; /* which the next one points to */
    nghttp2_hd_inflater *inflater;
    struct h2_packer packer;
    struct h2_limits limits;
    enum h2_role role;
    enum h2_end end;
    struct h2_guard guard;
    becalm_ns now;

    struct h2_stream *streams;
    struct h2_stream *slot[H2_STREAM_SLOTS];
    struct h2_stream *closed; /* closed streams, to be freed when no function can use them any more */
    uint32_t stream_count;
    size_t held;
    int32_t next_id;    /* a client's: of the next request */
    int32_t last_taken; /* a server's: the latest stream that may have reached an owner */
    int32_t last_said;  /* a server's: the last stream by its GOAWAY; H2_ID_MAX: it takes more */
    int32_t last_told;  /* a client's: the last stream by the peer's GOAWAY */
    struct h2_past past;

    struct h2_reader reader;
    struct h2_block block; /* the head that is coming */
    struct bytes part;     /* of it, while the rest has not come */
    enum h2_heading heading;
    int32_t heading_id;
    uint8_t heading_flags;
    uint8_t continuations;

    struct bytes queue;  /* frames that wait to be written, all but DATA */
    uint64_t taken;      /* bytes of them that were, since ever */
    uint32_t acks;       /* among them */
    uint32_t queue_size; /* streams that have something to be written, first come first served */
    struct h2_stream *first;
    struct h2_stream **last;

    int32_t window;        /* bytes that we may send */
    int32_t peers_window;  /* and the peer */
    uint32_t untold;       /* see struct h2_stream */
    int32_t whole_window;  /* the peer's window when it is fully open */
    int32_t stream_window; /* of the streams that we open; the peer's SETTINGS say it */
    int32_t peers_stream_window;
    uint32_t streams_max; /* the peer's SETTINGS say it */
    uint32_t table_least; /* of the table by which we pack, by the SETTINGS that are coming, and ... */
    uint32_t table_bytes; /* ... its latest value */

    uint32_t drains;   /* streams that were full and are not so any more */
    bool busy;         /* a function of the session is running: neither the session nor a stream must be freed */
    bool doomed;       /* the session is freed after that */
    bool going;        /* GOAWAY has announced the end ... */
    bool gone;         /* ... and which stream was the last; or the peer has */
    bool has_settings; /* the peer's */
    bool table_said;   /* in those that are coming */
    bool acknowledged; /* ours were */
    bool dead;         /* there was no memory to go on */
};

/* ---- streams ---- */

/* NULL: there is none that is not over. */
struct h2_stream *h2_stream_find(const struct h2_session *, int32_t id);
/* Is the stream not opened yet? A host can't know a request that was not written yet. */
bool h2_is_idle(const struct h2_session *, int32_t id);
/* NULL: no memory. */
struct h2_stream *h2_stream_new(struct h2_session *, int32_t id);
/* The one writer of a stream's state. H2_STATE_CLOSED removes it from the session without a callback. */
void h2_stream_enter(struct h2_stream *, enum h2_state);
/* The stream is over, and its owner is told, if there is one. */
void h2_stream_close(struct h2_stream *, uint32_t code);
/* The stream ends by our fault or by its peer's: RST_STREAM, and its owner is told. */
void h2_stream_fail(struct h2_stream *, uint32_t code);
/* One side has ended the stream, by a frame that was written or received. The stream may be over after that. */
void h2_stream_said_all(struct h2_stream *);
void h2_stream_heard_all(struct h2_stream *);
/* Its last is in the queue now, or was passed on. */
void h2_stream_end_queued(struct h2_stream *);
/* Queues the stream, which has bytes to write. */
void h2_stream_queue(struct h2_stream *);
void h2_stream_unqueue(struct h2_stream *);
/* Frees those that are closed. */
void h2_streams_bury(struct h2_session *);

/* ---- which streams there were ---- */

void h2_past_opened(struct h2_past *, int32_t id);
void h2_past_ended(struct h2_past *, int32_t id);
bool h2_past_has_ended(const struct h2_past *, int32_t id);
bool h2_past_skipped(const struct h2_past *, int32_t id);

/* ---- windows ---- */

/* DATA has come, so many bytes with its padding; NULL: for a stream that is over. An error code; H2_NO_ERROR: it was in
 * the windows. *whole: the error is the connection's. */
uint32_t h2_flow_came(struct h2_session *, struct h2_stream *, uint32_t length, bool *whole);
/* So many bytes of a stream's body may be sent again. */
void h2_flow_taken(struct h2_stream *, uint32_t length);
/* The peer opens a window: false: too far. */
bool h2_flow_opened(int32_t *window, uint32_t more);
/* All streams' windows change by this much. False: one of them goes too far. */
bool h2_flow_all(struct h2_session *, int64_t change);

/* ---- settings ---- */

void h2_settings_say(struct h2_session *);
/* One parameter of the peer's; an error code. */
uint32_t h2_settings_take(struct h2_session *, uint16_t what, uint32_t value);
/* All of them are here, and are acknowledged next. */
void h2_settings_taken(struct h2_session *);
/* The peer knows ours. False: it can't, they are not on their way. */
bool h2_settings_acknowledged(struct h2_session *);

/* ---- frames that wait to be written ---- */

/* Room for this many bytes at the end of the queue. NULL: out of memory. */
char *h2_queue_room(struct h2_session *, size_t);
static inline void h2_queue_used(struct h2_session *session, size_t length)
{
    session->queue.length += (uint32_t)length;
}
/* How many bytes were ever queued: where the next one stands. */
static inline uint64_t h2_queue_end(const struct h2_session *session)
{
    return session->taken + bytes_left(&session->queue);
}
/* A frame with this payload. Without memory the session is over. */
void h2_queue_frame(struct h2_session *, struct h2_frame, const char *payload);
void h2_queue_number(struct h2_session *, enum h2_frame_type, int32_t id, uint32_t number);
/* RST_STREAM, which counts as a fault of the peer if it is one. */
void h2_queue_reset(struct h2_session *, int32_t id, uint32_t code);
void h2_queue_goaway(struct h2_session *, int32_t last, uint32_t code);
/* Removes the heads of requests of which no byte has been written. Their owners are not told. */
void h2_queue_cut(struct h2_session *);
struct h2_fields;
/* HEADERS, and CONTINUATION if they need it. False: no memory. */
bool h2_queue_head(struct h2_session *, int32_t id, struct h2_fields *, bool end);

/* ---- its end ---- */

/* This side ends the session, if it has not ended yet: GOAWAY with this code. */
void h2_end_session(struct h2_session *, enum h2_end, uint32_t code);
/* A flood: the peer is asked to calm down, and hears no more. */
void h2_flood(struct h2_session *, enum h2_end);
/* The peer has broken a rule. */
void h2_wrong(struct h2_session *, uint32_t code);
/* There is no memory to go on. */
void h2_out_of_memory(struct h2_session *);
/* The running function ends: does the work that was postponed. False: the session is gone. */
bool h2_idle_again(struct h2_session *);
static inline bool h2_goes_on(const struct h2_session *session)
{
    return session->end == H2_END_NONE && !session->doomed;
}

/* ---- receiving ---- */

void h2_receive(struct h2_session *, const uint8_t *bytes, size_t length);
/* A frame's head has arrived: counts it, and chooses what is read next. */
void h2_take_frame(struct h2_session *);
/* A part of fixed length: how long it is, and it has come. */
uint32_t h2_part_length(const struct h2_session *);
void h2_take_part(struct h2_session *);
void h2_take_data(struct h2_session *, const char *bytes, uint32_t length);
/* DATA has come to the end of its payload. */
void h2_take_data_end(struct h2_session *);
/* All of SETTINGS has. */
void h2_take_settings_end(struct h2_session *);
/* DATA or HEADERS: chooses what is read after the frame's head. */
void h2_payload_begin(struct h2_session *);
/* HEADERS begins, or CONTINUATION. */
void h2_take_head_begin(struct h2_session *);
void h2_take_head_goes_on(struct h2_session *);
void h2_take_head(struct h2_session *, const uint8_t *bytes, uint32_t length);
/* The peer has ended a stream; the length of its body was checked. */
void h2_take_end(struct h2_stream *);

#endif
