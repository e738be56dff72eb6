// SPDX-License-Identifier: MIT

// C++'s grpc as a server and as a client; test_grpc_peers.py says what both do. Messages are plain bytes.
//
//	lab serve ADDRESS [age=MS] [cert=FILE key=FILE]
//	lab ask ADDRESS [ca=FILE] [keepalive=MS] [config=JSON] CASE...
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace
{

using Words = std::map<std::string, std::string>;
using Clock = std::chrono::system_clock;

const auto patience = std::chrono::seconds(60);
const int large = 16 << 20;
const std::string odd = "weil's so ist: \xc3\xbc %\n";

std::string file(const std::string &path)
{
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

grpc::ByteBuffer wrapped(const std::string &text)
{
    grpc::Slice slice(text);
    return {&slice, 1};
}

std::string plain(const grpc::ByteBuffer &buffer)
{
    std::vector<grpc::Slice> slices;
    std::string text;
    if (buffer.Dump(&slices).ok()) {
        for (const auto &each : slices) {
            text.append(reinterpret_cast<const char *>(each.begin()), each.size());
        }
    }
    return text;
}

// ---- the server ----

struct Seen {
    std::mutex lock;
    std::map<std::string, int> times;

    int count(const std::string &what, int more = 1)
    {
        std::lock_guard<std::mutex> guard(lock);
        return times[what] += more;
    }
};

class Call : public grpc::ServerGenericBidiReactor
{
  public:
    Call(Seen &seen, grpc::GenericCallbackServerContext *context)
        : seen(seen), context(context), method(context->method())
    {
        bool head = !field("x-head").empty();
        for (const auto &each : context->client_metadata()) {
            std::string name(each.first.data(), each.first.size()), value(each.second.data(), each.second.size());
            if (name == "x-text" || name == "x-raw-bin") {
                context->AddInitialMetadata(name, value);
                context->AddTrailingMetadata(name, value);
                head = true;
            }
        }
        if (head) {
            StartSendInitialMetadata();
        } else {
            begin();
        }
    }

  private:
    std::string field(const std::string &name)
    {
        const auto &all = context->client_metadata();
        auto found = all.find(name);
        return found == all.end() ? "" : std::string(found->second.data(), found->second.size());
    }

    // What the metadata of a call ask for before its messages are looked at. True: it is over.
    bool ordered()
    {
        int times = field("x-name").empty() ? 0 : seen.count(field("x-name"));
        if (!field("x-fails").empty() && times > std::stoi(field("x-fails"))) {
            return false;
        }
        if (!field("x-pushback").empty()) {
            context->AddTrailingMetadata("grpc-retry-pushback-ms", field("x-pushback"));
        }
        if (field("x-code").empty()) {
            return false;
        }
        Finish(grpc::Status(static_cast<grpc::StatusCode>(std::stoi(field("x-code"))), field("x-message-bin")));
        return true;
    }

    void begin()
    {
        if (ordered()) {
            return;
        }
        if (method == "/lab.Lab/Left") {
            auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(context->deadline() - Clock::now()).count();
            say(left > 1000000000 ? "none" : std::to_string(left));
        } else if (method == "/lab.Lab/Wait") {
            std::lock_guard<std::mutex> guard(lock);
            seen.count("begun " + field("x-name"));
            waits = true;
            leave();
        } else if (method.rfind("/lab.Lab/", 0) == 0) {
            StartRead(&in);
        } else {
            Finish(grpc::Status(grpc::UNIMPLEMENTED, method));
        }
    }

    void say(const std::string &text)
    {
        out = wrapped(text);
        StartWrite(&out);
    }

    // Of a call that waits: when it has begun and was cancelled, in any order.
    void leave()
    {
        if (waits && cancelled) {
            waits = false;
            seen.count("gone " + field("x-name"));
            Finish(grpc::Status::CANCELLED);
        }
    }

    void OnSendInitialMetadataDone(bool ok) override
    {
        if (ok) {
            begin();
        } else {
            Finish(grpc::Status::CANCELLED);
        }
    }

    void OnReadDone(bool ok) override
    {
        if (method == "/lab.Lab/Both" && ok) {
            out = in;
            StartWrite(&out);
        } else if (method == "/lab.Lab/Both") {
            Finish(grpc::Status::OK);
        } else if (method == "/lab.Lab/Client" && ok) {
            count++;
            length += in.Length();
            StartRead(&in);
        } else if (method == "/lab.Lab/Client") {
            say(std::to_string(count) + " " + std::to_string(length));
        } else if (!ok) {
            Finish(grpc::Status(grpc::INTERNAL, "no message"));
        } else if (method == "/lab.Lab/Unary") {
            out = in;
            StartWrite(&out);
        } else if (method == "/lab.Lab/Seen") {
            say(std::to_string(seen.count(plain(in), 0)));
        } else if (method == "/lab.Lab/Server") {
            length = std::stoul(plain(in));
            OnWriteDone(true);
        } else {
            Finish(grpc::Status(grpc::UNIMPLEMENTED, method));
        }
    }

    void OnWriteDone(bool ok) override
    {
        if (!ok) {
            Finish(grpc::Status::CANCELLED);
        } else if (method == "/lab.Lab/Both") {
            StartRead(&in);
        } else if (method == "/lab.Lab/Server" && count < length) {
            say(std::string(count++, 's'));
        } else {
            Finish(grpc::Status::OK);
        }
    }

    void OnCancel() override
    {
        std::lock_guard<std::mutex> guard(lock);
        cancelled = true;
        leave();
    }

    void OnDone() override
    {
        delete this;
    }

    Seen &seen;
    grpc::GenericCallbackServerContext *context;
    std::string method;
    grpc::ByteBuffer in, out;
    size_t count = 0, length = 0;
    std::mutex lock;
    bool waits = false, cancelled = false;
};

class Service : public grpc::CallbackGenericService
{
    grpc::ServerGenericBidiReactor *CreateReactor(grpc::GenericCallbackServerContext *context) override
    {
        return new Call(seen, context);
    }
    Seen seen;
};

int serve(const std::string &address, Words &words)
{
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    Service service;
    auto credentials = grpc::InsecureServerCredentials();
    if (!words["cert"].empty()) {
        grpc::SslServerCredentialsOptions options;
        options.pem_key_cert_pairs.push_back({file(words["key"]), file(words["cert"])});
        credentials = grpc::SslServerCredentials(options);
    }
    builder.AddListeningPort(address, credentials);
    builder.RegisterCallbackGenericService(&service);
    builder.SetMaxReceiveMessageSize(large);
    builder.SetMaxSendMessageSize(large);
    if (!words["age"].empty()) {
        builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, std::stoi(words["age"]));
    }
    auto server = builder.BuildAndStart();
    if (server == nullptr) {
        return 1;
    }
    server->Wait();
    return 0;
}

// ---- the client ----

using Channel = std::shared_ptr<grpc::Channel>;

struct Failure {
    std::string what;
};

template <typename... What> void expect(bool holds, const What &...what)
{
    if (!holds) {
        std::ostringstream text;
        (void)std::initializer_list<int>{(text << what << ' ', 0)...};
        throw Failure{text.str()};
    }
}

// One call, step by step. Each step waits for its end.
class Stream
{
  public:
    Stream(const Channel &channel, const std::string &method, const Words &fields = {})
        : stub(channel), path(method[0] == '/' ? method : "/lab.Lab/" + method)
    {
        for (const auto &each : fields) {
            context.AddMetadata(each.first, each.second);
        }
        context.set_deadline(Clock::now() + 10 * patience);
    }

    ~Stream()
    {
        queue.Shutdown();
        void *tag;
        bool ok;
        while (queue.Next(&tag, &ok)) {
        }
    }

    bool begin()
    {
        call = stub.PrepareCall(&context, path, &queue);
        call->StartCall(this);
        return done();
    }

    bool write(const std::string &text)
    {
        call->Write(wrapped(text), this);
        return done();
    }

    bool close()
    {
        call->WritesDone(this);
        return done();
    }

    bool read(std::string *text)
    {
        grpc::ByteBuffer buffer;
        call->Read(&buffer, this);
        bool ok = done();
        *text = ok ? plain(buffer) : "";
        return ok;
    }

    // Reads what is left, and its status.
    grpc::Status finish()
    {
        std::string text;
        while (read(&text)) {
        }
        grpc::Status status;
        call->Finish(&status, this);
        done();
        return status;
    }

    grpc::Status unary(const std::string &text, std::string *answer)
    {
        if (begin() && write(text) && close()) {
            read(answer);
        }
        return finish();
    }

    grpc::ClientContext context;

  private:
    bool done()
    {
        void *tag;
        bool ok = false;
        return queue.Next(&tag, &ok) && ok;
    }

    grpc::GenericStub stub;
    std::string path;
    grpc::CompletionQueue queue;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
};

void sized(const Channel &channel, size_t length, grpc_compression_algorithm how = GRPC_COMPRESS_NONE)
{
    std::string message(length, 0), answer;
    for (size_t i = 0; i < length; i++) {
        message[i] = how == GRPC_COMPRESS_NONE ? static_cast<char>(i * 7) : 'z';
    }
    Stream stream(channel, "Unary");
    stream.context.set_compression_algorithm(how);
    auto status = stream.unary(message, &answer);
    expect(status.ok() && answer == message, answer.size(), status.error_code(), status.error_message());
}

std::string seen(const Channel &channel, const std::string &what)
{
    std::string said;
    return Stream(channel, "Seen").unary(what, &said).ok() ? said : "?";
}

void until(const Channel &channel, const std::string &what, const std::string &times)
{
    for (auto end = Clock::now() + patience; seen(channel, what) != times;) {
        expect(Clock::now() < end, what, seen(channel, what));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

std::string name(const std::string &what)
{
    return what + " " + std::to_string(Clock::now().time_since_epoch().count());
}

void client_streams(const Channel &channel)
{
    for (int count : {0, 1, 500}) {
        Stream stream(channel, "Client");
        stream.begin();
        for (int i = 0; i < count; i++) {
            expect(stream.write(std::string(i, 'c')), "it can't be sent");
        }
        stream.close();
        std::string got;
        stream.read(&got);
        auto status = stream.finish();
        expect(status.ok() && got == std::to_string(count) + " " + std::to_string(count * (count - 1) / 2), got,
               status.error_message());
    }
}

void server_streams(const Channel &channel)
{
    Stream stream(channel, "Server");
    expect(stream.begin() && stream.write("300") && stream.close(), "it can't be sent");
    for (size_t i = 0; i < 300; i++) {
        std::string got;
        expect(stream.read(&got) && got.size() == i, i, got.size());
    }
    expect(stream.finish().ok(), "it does not end well");
}

void both_stream(const Channel &channel)
{
    Stream stream(channel, "Both");
    stream.begin();
    for (size_t length : {0, 1, 70000, 1 << 20, 3}) {
        std::string got;
        expect(stream.write(std::string(length, 'b')) && stream.read(&got) && got.size() == length, length, got.size());
    }
    stream.close();
    expect(stream.finish().ok(), "it does not end well");
    Stream empty(channel, "Both");
    expect(empty.begin() && empty.close() && empty.finish().ok(), "an empty one does not end well");
}

void metadata(const Channel &channel)
{
    std::string raw(256, 0), answer;
    for (int i = 0; i < 256; i++) {
        raw[i] = static_cast<char>(i);
    }
    Stream stream(channel, "Unary");
    for (const auto &each : {std::make_pair("x-text", std::string("1")),
                             {"x-text", "2"},
                             {"x-raw-bin", raw},
                             {"x-raw-bin", std::string(1, 0)}}) {
        stream.context.AddMetadata(each.first, each.second);
    }
    expect(stream.unary("", &answer).ok(), "it failed");
    for (const auto *fields :
         {&stream.context.GetServerInitialMetadata(), &stream.context.GetServerTrailingMetadata()}) {
        std::string text, binary;
        for (const auto &each : *fields) {
            if (each.first == "x-text") {
                text.append(each.second.data(), each.second.size());
            } else if (each.first == "x-raw-bin") {
                binary.append(each.second.data(), each.second.size());
            }
        }
        expect(text == "12" && binary == raw + std::string(1, 0), text, binary.size());
    }
}

void statuses(const Channel &channel)
{
    for (int code = 1; code <= 16; code++) {
        for (const char *method : {"Unary", "Both"}) {
            Words fields{{"x-code", std::to_string(code)}, {"x-message-bin", odd}};
            if (method[0] == 'B') {
                fields["x-head"] = "1";
            }
            std::string answer;
            auto status = Stream(channel, method, fields).unary("", &answer);
            expect(status.error_code() == code && status.error_message() == odd, method, code, status.error_code(),
                   status.error_message());
        }
    }
}

void unimplemented(const Channel &channel)
{
    for (const char *path : {"/lab.Lab/Nothing", "/nobody.Knows/It"}) {
        std::string answer;
        auto status = Stream(channel, path).unary("", &answer);
        expect(status.error_code() == grpc::UNIMPLEMENTED, status.error_code());
    }
}

void deadline(const Channel &channel)
{
    for (auto wait = std::chrono::milliseconds(300);;
         wait *= 4) { // on a busy machine the call may not even have begun by then
        std::string mine = name("deadline"), answer;
        Stream stream(channel, "Wait", {{"x-name", mine}});
        stream.context.set_deadline(Clock::now() + wait);
        auto status = stream.unary("", &answer);
        expect(status.error_code() == grpc::DEADLINE_EXCEEDED, status.error_code(), status.error_message());
        if (seen(channel, "begun " + mine) == "1") {
            return until(channel, "gone " + mine, "1");
        }
        expect(wait < patience, "it never began");
    }
}

void left(const Channel &channel)
{
    std::string said;
    Stream soon(channel, "Left");
    soon.context.set_deadline(Clock::now() + std::chrono::seconds(50));
    expect(soon.unary("", &said).ok() && std::stoi(said) > 20000 && std::stoi(said) < 50200, said);
    Stream never(channel, "Left");
    never.context.set_deadline(std::chrono::time_point<Clock>::max());
    expect(never.unary("", &said).ok() && said == "none", said);
}

void cancel(const Channel &channel)
{
    std::string answer, mine = name("cancel");
    Stream before(channel, "Unary");
    before.context.TryCancel();
    expect(before.unary("", &answer).error_code() == grpc::CANCELLED, "it was not cancelled before");
    Stream waits(channel, "Wait", {{"x-name", mine}});
    waits.begin();
    until(channel, "begun " + mine, "1");
    waits.context.TryCancel();
    expect(waits.finish().error_code() == grpc::CANCELLED, "it was not cancelled");
    until(channel, "gone " + mine, "1");
    Stream both(channel, "Both");
    expect(both.begin() && both.write("one") && both.read(&answer) && answer == "one", answer);
    both.context.TryCancel();
    expect(both.finish().error_code() == grpc::CANCELLED, "it was not cancelled in its middle");
    sized(channel, 5);
}

void health(const Channel &channel)
{
    std::string said, serving("\x08\x01");
    expect(Stream(channel, "/grpc.health.v1.Health/Check").unary("", &said).ok() && said == serving,
           "Check:", said.size());
    auto status = Stream(channel, "/grpc.health.v1.Health/Check").unary("\x0a\x06nobody", &said);
    expect(status.error_code() == grpc::NOT_FOUND, status.error_code());
    Stream watch(channel, "/grpc.health.v1.Health/Watch");
    expect(watch.begin() && watch.write("") && watch.close() && watch.read(&said) && said == serving,
           "Watch:", said.size());
    watch.context.TryCancel();
    watch.finish();
}

// The gateway sends a call once more whose server fails it at first, in a head of trailers alone or behind a head.
void retries(const Channel &channel)
{
    for (bool head : {false, true}) {
        std::string answer, mine = name("retries");
        Words fields{{"x-name", mine}, {"x-fails", "1"}, {"x-code", "14"}};
        if (head) {
            fields["x-head"] = "1";
        }
        auto status = Stream(channel, "Unary", fields).unary("again", &answer);
        expect(status.ok() && answer == "again", status.error_message());
        until(channel, mine, "2");
    }
}

void pushback(const Channel &channel)
{
    for (const auto &each : Words{{"-1", "1"}, {"5", "2"}}) {
        std::string answer, mine = name("pushback");
        auto status =
            Stream(channel, "Unary", {{"x-name", mine}, {"x-fails", "1"}, {"x-code", "14"}, {"x-pushback", each.first}})
                .unary("", &answer);
        expect(status.ok() == (each.second == "2"), each.first, status.error_message());
        until(channel, mine, each.second);
    }
}

// Fails for ever: how often it comes is for the caller to say.
void fails(const Channel &channel)
{
    std::string answer;
    auto status = Stream(channel, "Unary", {{"x-name", "fails"}, {"x-code", "14"}}).unary("", &answer);
    expect(status.error_code() == grpc::UNAVAILABLE, status.error_code());
    std::cout << "times " << seen(channel, "fails") << std::endl;
}

// Calls one after the other, until a line comes.
void many(const Channel &channel)
{
    bool done = false;
    std::mutex lock;
    std::thread waits([&] {
        std::cin.get();
        std::lock_guard<std::mutex> guard(lock);
        done = true;
    });
    std::string problem;
    for (int count = 0;; count++) {
        {
            std::lock_guard<std::mutex> guard(lock);
            if (done) {
                std::cout << "calls " << count << std::endl;
                break;
            }
        }
        try {
            sized(channel, count % 3000);
        } catch (const Failure &failure) {
            problem = failure.what;
        }
    }
    waits.join();
    expect(problem.empty(), problem);
}

// A stream that is open until a line comes.
void open(const Channel &channel)
{
    Stream stream(channel, "Both");
    stream.begin();
    for (int i = 0; i < 2; i++) {
        std::string got;
        expect(stream.write("still") && stream.read(&got) && got == "still", "it has ended");
        std::cout << "open" << std::endl;
        std::cin.get();
    }
    stream.close();
    auto status = stream.finish();
    expect(status.ok(), status.error_message());
}

const std::map<std::string, std::function<void(const Channel &)>> cases = {
    {"empty", [](const Channel &channel) { sized(channel, 0); }},
    {"large", [](const Channel &channel) { sized(channel, 4 << 20); }},
    {"sizes",
     [](const Channel &channel) {
         for (size_t length : {1, 16378, 16379, 16384, 65530, 65536, 1 << 20}) {
             sized(channel, length);
         }
     }},
    {"compression",
     [](const Channel &channel) {
         sized(channel, 1 << 20, GRPC_COMPRESS_GZIP);
         sized(channel, 1 << 20);
     }},
    {"client", client_streams},
    {"server", server_streams},
    {"both", both_stream},
    {"metadata", metadata},
    {"status", statuses},
    {"unimplemented", unimplemented},
    {"deadline", deadline},
    {"left", left},
    {"cancel", cancel},
    {"health", health},
    {"retries", retries},
    {"pushback", pushback},
    {"fails", fails},
    {"many", many},
    {"open", open},
};

int ask(const std::string &address, Words &words, const std::vector<std::string> &names)
{
    grpc::ChannelArguments options;
    options.SetMaxReceiveMessageSize(large);
    options.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    auto credentials = grpc::InsecureChannelCredentials();
    if (!words["ca"].empty()) {
        grpc::SslCredentialsOptions trusts;
        trusts.pem_root_certs = file(words["ca"]);
        credentials = grpc::SslCredentials(trusts);
        options.SetSslTargetNameOverride("a.test");
    }
    if (!words["config"].empty()) {
        options.SetServiceConfigJSON(words["config"]);
    }
    if (!words["keepalive"].empty()) {
        options.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, std::stoi(words["keepalive"]));
        options.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
        options.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    }
    auto channel = grpc::CreateCustomChannel(address, credentials, options);
    for (const auto &each : names) {
        std::string said = "ok";
        try {
            cases.at(each)(channel);
        } catch (const Failure &failure) {
            said = "FAILED: " + failure.what;
        }
        std::cout << each << " " << said << std::endl;
    }
    return 0;
}

} // namespace

int main(int count, char **arguments)
{
    Words words;
    std::vector<std::string> names;
    for (int i = 3; i < count; i++) {
        std::string each = arguments[i];
        auto at = each.find('=');
        if (at == std::string::npos) {
            names.push_back(each);
        } else {
            words[each.substr(0, at)] = each.substr(at + 1);
        }
    }
    return std::string(arguments[1]) == "serve" ? serve(arguments[2], words) : ask(arguments[2], words, names);
}
