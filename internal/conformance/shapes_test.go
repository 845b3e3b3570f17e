package conformance

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/meridian-mesh/meridian/xds"
)

// method is one of the adapter's calls.
type method struct {
	takes, gives string
	call         call
}

// methods are the five calls.
var methods = map[string]method{
	"SetState": {"State", "Success", func(a *adapter, in *dynamicpb.Message) error {
		resources, err := given(in)
		if err == nil {
			a.setState(text(in, "node"), text(in, "version"), resources)
		}
		return err
	}},
	"ClearState": {"Node", "Text", func(a *adapter, in *dynamicpb.Message) error {
		a.clearState(text(in, "node"))
		return nil
	}},
	"AddResource":    {"Resource", "Success", put},
	"UpdateResource": {"Resource", "Success", put},
	"RemoveResource": {"Resource", "Success", func(a *adapter, in *dynamicpb.Message) error {
		a.remove(text(in, "node"), xds.Type(text(in, "type")), text(in, "name"), text(in, "version"))
		return nil
	}},
}

func put(a *adapter, in *dynamicpb.Message) error {
	return a.put(text(in, "node"), xds.Type(text(in, "type")), text(in, "name"), text(in, "version"))
}

// given are the resources of a state: bare messages with a name in their first field.
func given(in *dynamicpb.Message) ([]*xds.Resource, error) {
	list := in.Get(in.Descriptor().Fields().ByName("resources")).List()
	var all []*xds.Resource
	for i := range list.Len() {
		raw, err := proto.Marshal(list.Get(i).Message().Interface())
		if err != nil {
			return nil, err
		}
		var packed anypb.Any
		if err := proto.Unmarshal(raw, &packed); err != nil {
			return nil, err
		}
		name, err := nameOf(&packed)
		if err != nil {
			return nil, err
		}
		r, err := resource(xds.Type(packed.GetTypeUrl()), name, text(in, "version"))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// nameOf is the first field of any of the types.
func nameOf(packed *anypb.Any) (string, error) {
	m, err := packed.UnmarshalNew()
	if err != nil {
		return "", err
	}
	return m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByNumber(1)).String(), nil
}

// shapes are the calls' messages by their fields' numbers and kinds; on the wire they have no other name.
var shapes = mustDescribe(map[string][]*descriptorpb.FieldDescriptorProto{
	"State":    {textField("node", 1), textField("version", 2), resourcesField(3)},
	"Node":     {textField("node", 1)},
	"Resource": {textField("node", 1), textField("type", 2), textField("name", 3), textField("version", 4)},
	"Success":  {field("success", 1, descriptorpb.FieldDescriptorProto_TYPE_BOOL)},
	"Text":     {textField("response", 1)},
})

func field(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
	return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
}

func textField(name string, number int32) *descriptorpb.FieldDescriptorProto {
	return field(name, number, descriptorpb.FieldDescriptorProto_TYPE_STRING)
}

func resourcesField(number int32) *descriptorpb.FieldDescriptorProto {
	f := field("resources", number, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE)
	f.Label, f.TypeName = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum(), proto.String(".google.protobuf.Any")
	return f
}

func mustDescribe(messages map[string][]*descriptorpb.FieldDescriptorProto) protoreflect.MessageDescriptors {
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("adapter"), Syntax: proto.String("proto3"), Dependency: []string{"google/protobuf/any.proto"}}
	for name, fields := range messages {
		file.MessageType = append(file.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(name), Field: fields})
	}
	d, err := protodesc.NewFile(file, protoFiles{})
	if err != nil {
		panic(err) // it is written above
	}
	return d.Messages()
}

// protoFiles finds the one file that the shapes depend on.
type protoFiles struct{}

// FindFileByPath implements protodesc.Resolver.
func (protoFiles) FindFileByPath(string) (protoreflect.FileDescriptor, error) {
	return anypb.File_google_protobuf_any_proto, nil
}

// FindDescriptorByName implements protodesc.Resolver.
func (protoFiles) FindDescriptorByName(protoreflect.FullName) (protoreflect.Descriptor, error) {
	return anypb.File_google_protobuf_any_proto.Messages().ByName("Any"), nil
}

func (m method) request() protoreflect.MessageDescriptor {
	return shapes.ByName(protoreflect.Name(m.takes))
}

// done is the answer of a call that went well.
func (m method) done() *dynamicpb.Message {
	out := dynamicpb.NewMessage(shapes.ByName(protoreflect.Name(m.gives)))
	f := out.Descriptor().Fields().ByNumber(1)
	if f.Kind() == protoreflect.BoolKind {
		out.Set(f, protoreflect.ValueOfBool(true))
	} else {
		out.Set(f, protoreflect.ValueOfString("cleared"))
	}
	return out
}
