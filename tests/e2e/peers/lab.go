// SPDX-License-Identifier: MIT

// Go's grpc as a server and as a client; test_grpc_peers.py says what both do. Messages are plain bytes.
//
//	lab serve ADDRESS [age=MS] [cert=FILE key=FILE]
//	lab ask ADDRESS [ca=FILE] [keepalive=MS] [config=JSON] CASE...
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang/protobuf/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	patience = 60 * time.Second
	large    = 16 << 20
	odd      = "weil's so ist: \u00fc %\n"
)

// Plain bytes as they are, and the health service's messages as protobuf writes them.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(value interface{}) ([]byte, error) {
	if plain, is := value.(*[]byte); is {
		return *plain, nil
	}
	return proto.Marshal(value.(proto.Message))
}

func (codec) Unmarshal(data []byte, value interface{}) error {
	if plain, is := value.(*[]byte); is {
		*plain = append([]byte(nil), data...)
		return nil
	}
	return proto.Unmarshal(data, value.(proto.Message))
}

// ---- the server ----

type server struct {
	lock sync.Mutex
	seen map[string]int
}

func (lab *server) count(what string) int {
	lab.lock.Lock()
	defer lab.lock.Unlock()
	lab.seen[what]++
	return lab.seen[what]
}

func first(fields metadata.MD, name string) string {
	if values := fields.Get(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// What the metadata of a call ask for before its messages are looked at.
func (lab *server) ordered(stream grpc.ServerStream, asked metadata.MD) error {
	back := metadata.MD{}
	for _, name := range []string{"x-text", "x-raw-bin"} {
		back[name] = asked[name]
	}
	if len(back["x-text"]) > 0 || first(asked, "x-head") != "" {
		if err := stream.SendHeader(back); err != nil {
			return err
		}
		stream.SetTrailer(back)
	}
	name, times := first(asked, "x-name"), 0
	if name != "" {
		times = lab.count(name)
	}
	if fails, _ := strconv.Atoi(first(asked, "x-fails")); times > fails && first(asked, "x-fails") != "" {
		return nil
	}
	if wait := first(asked, "x-pushback"); wait != "" {
		stream.SetTrailer(metadata.Pairs("grpc-retry-pushback-ms", wait))
	}
	if code := first(asked, "x-code"); code != "" {
		number, _ := strconv.Atoi(code)
		return status.Error(codes.Code(number), first(asked, "x-message-bin"))
	}
	return nil
}

func (lab *server) handle(_ interface{}, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	asked, _ := metadata.FromIncomingContext(stream.Context())
	if err := lab.ordered(stream, asked); err != nil {
		return err
	}
	var got []byte
	switch method {
	case "/lab.Lab/Unary":
		if err := stream.RecvMsg(&got); err != nil {
			return err
		}
		return stream.SendMsg(&got)
	case "/lab.Lab/Server":
		if err := stream.RecvMsg(&got); err != nil {
			return err
		}
		for i, count := 0, number(got); i < count; i++ {
			each := bytes.Repeat([]byte("s"), i)
			if err := stream.SendMsg(&each); err != nil {
				return err
			}
		}
		return nil
	case "/lab.Lab/Client":
		count, length := 0, 0
		for stream.RecvMsg(&got) == nil {
			count, length = count+1, length+len(got)
		}
		said := []byte(fmt.Sprint(count, " ", length))
		return stream.SendMsg(&said)
	case "/lab.Lab/Both":
		for {
			err := stream.RecvMsg(&got)
			if err == io.EOF {
				return nil
			}
			if err == nil {
				err = stream.SendMsg(&got)
			}
			if err != nil {
				return err
			}
		}
	case "/lab.Lab/Wait":
		lab.count("begun " + first(asked, "x-name"))
		<-stream.Context().Done()
		lab.count("gone " + first(asked, "x-name"))
		return status.FromContextError(stream.Context().Err()).Err()
	case "/lab.Lab/Left":
		said := []byte("none")
		if until, has := stream.Context().Deadline(); has {
			said = []byte(fmt.Sprint(time.Until(until).Milliseconds()))
		}
		return stream.SendMsg(&said)
	case "/lab.Lab/Seen":
		if err := stream.RecvMsg(&got); err != nil {
			return err
		}
		lab.lock.Lock()
		said := []byte(fmt.Sprint(lab.seen[string(got)]))
		lab.lock.Unlock()
		return stream.SendMsg(&said)
	}
	return status.Error(codes.Unimplemented, method)
}

func number(text []byte) int {
	value, _ := strconv.Atoi(string(text))
	return value
}

func serve(address string, words map[string]string) {
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(large), grpc.MaxSendMsgSize(large)}
	if words["cert"] != "" {
		mine, err := credentials.NewServerTLSFromFile(words["cert"], words["key"])
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, grpc.Creds(mine))
	}
	if age, _ := strconv.Atoi(words["age"]); age > 0 {
		options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: time.Duration(age) * time.Millisecond}))
	}
	lab := &server{seen: map[string]int{}}
	options = append(options, grpc.UnknownServiceHandler(lab.handle))
	this := grpc.NewServer(options...)
	grpc_health_v1.RegisterHealthServer(this, health.NewServer())
	at, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(this.Serve(at))
}

// ---- the client ----

var streams = grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

type client struct{ *grpc.ClientConn }

func (to client) unary(ctx context.Context, method string, message []byte, options ...grpc.CallOption) ([]byte, error) {
	var answer []byte
	err := to.Invoke(ctx, "/lab.Lab/"+method, &message, &answer, options...)
	return answer, err
}

func (to client) begin(ctx context.Context, method string) grpc.ClientStream {
	stream, err := to.NewStream(ctx, &streams, "/lab.Lab/"+method)
	if err != nil {
		log.Fatal(err)
	}
	return stream
}

func expect(true bool, what ...interface{}) {
	if !true {
		panic(fmt.Sprint(what...))
	}
}

func with(pairs ...string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), pairs...)
}

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// Waits until the server has seen it so often.
func (to client) until(what string, count string) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		said, err := to.unary(context.Background(), "Seen", []byte(what))
		if err == nil && string(said) == count {
			return
		}
		expect(time.Now().Before(end), what, ": ", string(said), " ", err)
	}
}

func (to client) rest(stream grpc.ClientStream) error {
	var got []byte
	for {
		if err := stream.RecvMsg(&got); err != nil {
			return err
		}
	}
}

func (to client) sized(length int) {
	message := bytes.Repeat([]byte("0123456789abcdef"), length/16+1)[:length]
	answer, err := to.unary(context.Background(), "Unary", message)
	expect(err == nil && bytes.Equal(answer, message), len(answer), " ", err)
}

var cases = map[string]func(client){
	"empty": func(to client) { to.sized(0) },
	"large": func(to client) { to.sized(4 << 20) },
	"sizes": func(to client) {
		for _, length := range []int{1, 16378, 16379, 16384, 65530, 65536, 1 << 20} {
			to.sized(length)
		}
	},
	"client": func(to client) {
		for _, count := range []int{0, 1, 500} {
			stream := to.begin(context.Background(), "Client")
			for i := 0; i < count; i++ {
				message := make([]byte, i)
				expect(stream.SendMsg(&message) == nil, "it can't be sent")
			}
			stream.CloseSend()
			var got []byte
			err := stream.RecvMsg(&got)
			expect(err == nil && string(got) == fmt.Sprint(count, " ", count*(count-1)/2), string(got), " ", err)
			expect(to.rest(stream) == io.EOF, "it does not end")
		}
	},
	"server": func(to client) {
		stream := to.begin(context.Background(), "Server")
		message := []byte("300")
		stream.SendMsg(&message)
		stream.CloseSend()
		for i := 0; i < 300; i++ {
			var got []byte
			err := stream.RecvMsg(&got)
			expect(err == nil && len(got) == i, i, " ", len(got), " ", err)
		}
		expect(to.rest(stream) == io.EOF, "it does not end")
	},
	"both": func(to client) {
		stream := to.begin(context.Background(), "Both")
		for _, length := range []int{0, 1, 70000, 1 << 20, 3} {
			message, got := make([]byte, length), []byte(nil)
			stream.SendMsg(&message)
			err := stream.RecvMsg(&got)
			expect(err == nil && len(got) == length, length, " ", len(got), " ", err)
		}
		stream.CloseSend()
		expect(to.rest(stream) == io.EOF, "it does not end")
		stream = to.begin(context.Background(), "Both")
		stream.CloseSend()
		expect(to.rest(stream) == io.EOF, "an empty one does not end")
	},
	"metadata": func(to client) {
		raw := make([]byte, 256)
		for i := range raw {
			raw[i] = byte(i)
		}
		var head, trailer metadata.MD
		ctx := with("x-text", "1", "x-text", "2", "x-raw-bin", string(raw), "x-raw-bin", "\x00")
		_, err := to.unary(ctx, "Unary", nil, grpc.Header(&head), grpc.Trailer(&trailer))
		for _, each := range []metadata.MD{head, trailer} {
			text, binary := each.Get("x-text"), each.Get("x-raw-bin")
			expect(err == nil && fmt.Sprint(text) == "[1 2]", text, " ", err)
			expect(len(binary) == 2 && binary[0] == string(raw) && binary[1] == "\x00", fmt.Sprintf("%q", binary))
		}
	},
	"status": func(to client) {
		for code := 1; code <= 16; code++ {
			ctx := with("x-code", fmt.Sprint(code), "x-message-bin", odd)
			_, err := to.unary(ctx, "Unary", nil)
			said := status.Convert(err)
			expect(int(said.Code()) == code && said.Message() == odd, code, " ", err)
			stream := to.begin(with("x-code", fmt.Sprint(code), "x-message-bin", odd, "x-head", "1"), "Both")
			said = status.Convert(to.rest(stream))
			expect(int(said.Code()) == code && said.Message() == odd, code, " on a stream: ", said)
		}
	},
	"unimplemented": func(to client) {
		for _, path := range []string{"/lab.Lab/Nothing", "/nobody.Knows/It"} {
			var nothing, answer []byte
			err := to.Invoke(context.Background(), path, &nothing, &answer)
			expect(status.Code(err) == codes.Unimplemented, err)
		}
	},
	"deadline": func(to client) {
		for wait := 300 * time.Millisecond; ; wait *= 4 { // on a busy machine the call may not even have begun by then
			name := fmt.Sprint("deadline ", time.Now().UnixNano())
			ctx, cancel := context.WithTimeout(with("x-name", name), wait)
			_, err := to.unary(ctx, "Wait", nil)
			cancel()
			expect(status.Code(err) == codes.DeadlineExceeded, err)
			if said, err := to.unary(context.Background(), "Seen", []byte("begun "+name)); err == nil && string(said) == "1" {
				to.until("gone "+name, "1")
				return
			}
			expect(wait < patience, "it never began")
		}
	},
	"left": func(to client) {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
		defer cancel()
		said, err := to.unary(ctx, "Left", nil)
		expect(err == nil && number(said) > 20000 && number(said) < 50200, string(said), " ", err)
		said, err = to.unary(context.Background(), "Left", nil)
		expect(err == nil && string(said) == "none", string(said), " ", err)
	},
	"cancel": func(to client) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := to.unary(ctx, "Unary", nil)
		expect(status.Code(err) == codes.Canceled, err)
		name := fmt.Sprint("cancel ", time.Now().UnixNano())
		ctx, cancel = context.WithCancel(with("x-name", name))
		stream := to.begin(ctx, "Wait")
		to.until("begun "+name, "1")
		cancel()
		expect(status.Code(to.rest(stream)) == codes.Canceled, "it was not cancelled")
		to.until("gone "+name, "1")
		ctx, cancel = context.WithCancel(context.Background())
		stream = to.begin(ctx, "Both")
		message, got := []byte("one"), []byte(nil)
		stream.SendMsg(&message)
		expect(stream.RecvMsg(&got) == nil && string(got) == "one", string(got))
		cancel()
		expect(status.Code(to.rest(stream)) == codes.Canceled, "it was not cancelled in its middle")
		to.sized(5)
	},
	"compression": func(to client) {
		message := make([]byte, 1<<20)
		answer, err := to.unary(context.Background(), "Unary", message, grpc.UseCompressor(gzip.Name))
		expect(err == nil && bytes.Equal(answer, message), len(answer), " ", err)
		to.sized(1 << 20)
	},
	"health": func(to client) {
		asked := grpc_health_v1.NewHealthClient(to)
		said, err := asked.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
		expect(err == nil && said.Status == grpc_health_v1.HealthCheckResponse_SERVING, said, " ", err)
		_, err = asked.Check(context.Background(), &grpc_health_v1.HealthCheckRequest{Service: "nobody"})
		expect(status.Code(err) == codes.NotFound, err)
		ctx, cancel := soon()
		defer cancel()
		watch, err := asked.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
		expect(err == nil, err)
		said, err = watch.Recv()
		expect(err == nil && said.Status == grpc_health_v1.HealthCheckResponse_SERVING, said, " ", err)
	},
	// The gateway sends a call once more whose server fails it at first, in a head of trailers alone or behind a head.
	"retries": func(to client) {
		for _, more := range [][]string{nil, {"x-head", "1"}} {
			name := fmt.Sprint("retries ", time.Now().UnixNano())
			ctx := with(append(more, "x-name", name, "x-fails", "1", "x-code", "14")...)
			answer, err := to.unary(ctx, "Unary", []byte("again"))
			expect(err == nil && string(answer) == "again", err)
			to.until(name, "2")
		}
	},
	"pushback": func(to client) {
		for wait, times := range map[string]string{"-1": "1", "5": "2"} {
			name := fmt.Sprint("pushback ", time.Now().UnixNano())
			_, err := to.unary(with("x-name", name, "x-fails", "1", "x-code", "14", "x-pushback", wait), "Unary", nil)
			expect((err == nil) == (times == "2"), wait, ": ", err)
			to.until(name, times)
		}
	},
	// Fails for ever: how often it comes is for the caller to say.
	"fails": func(to client) {
		_, err := to.unary(with("x-name", "fails", "x-code", "14"), "Unary", nil)
		expect(status.Code(err) == codes.Unavailable, err)
		said, err := to.unary(context.Background(), "Seen", []byte("fails"))
		expect(err == nil, err)
		fmt.Println("times", string(said))
	},
	// Calls one after the other, until a line comes.
	"many": func(to client) {
		done := make(chan bool)
		go func() {
			os.Stdin.Read(make([]byte, 1))
			close(done)
		}()
		for count := 0; ; count++ {
			select {
			case <-done:
				fmt.Println("calls", count)
				return
			default:
				to.sized(count % 3000)
			}
		}
	},
	// A stream that is open until a line comes.
	"open": func(to client) {
		stream := to.begin(context.Background(), "Both")
		for range [2]int{} {
			message, got := []byte("still"), []byte(nil)
			stream.SendMsg(&message)
			err := stream.RecvMsg(&got)
			expect(err == nil && string(got) == "still", err)
			fmt.Println("open")
			os.Stdin.Read(make([]byte, 1))
		}
		stream.CloseSend()
		err := to.rest(stream)
		expect(err == io.EOF, err)
	},
}

func run(to client, name string) (said string) {
	defer func() {
		if problem := recover(); problem != nil {
			said = fmt.Sprint("FAILED: ", problem)
		}
	}()
	cases[name](to)
	return "ok"
}

func ask(address string, words map[string]string, names []string) {
	options := []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(large), grpc.MaxCallSendMsgSize(large))}
	if words["ca"] == "" {
		options = append(options, grpc.WithInsecure())
	} else {
		pem, err := os.ReadFile(words["ca"])
		if err != nil {
			log.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "a.test"})))
	}
	if config := words["config"]; config != "" {
		options = append(options, grpc.WithDefaultServiceConfig(config))
	}
	if every, _ := strconv.Atoi(words["keepalive"]); every > 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Duration(every) * time.Millisecond, Timeout: patience, PermitWithoutStream: true}))
	}
	to, err := grpc.Dial(address, options...)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range names {
		fmt.Println(name, run(client{to}, name))
	}
}

func main() {
	encoding.RegisterCodec(codec{})
	words, names := map[string]string{}, []string{}
	for _, each := range os.Args[3:] {
		if at := strings.IndexByte(each, '='); at > 0 {
			words[each[:at]] = each[at+1:]
		} else {
			names = append(names, each)
		}
	}
	if os.Args[1] == "serve" {
		serve(os.Args[2], words)
	}
	ask(os.Args[2], words, names)
}
